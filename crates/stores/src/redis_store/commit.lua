-- Applies a batch: all of it or nothing.
--
-- KEYS: the writer's hash, the hash of positions
-- ARGV: epoch, sequence, the sequence before it, then key and amount of every change
--
-- Numbers are compared and passed on as text: one of Lua's own would lose what does not fit into 53 bits.
local known = redis.call('HMGET', KEYS[1], 'epoch', 'sequence')
if known[1] ~= ARGV[1] then return {'epoch', known[1] or '0'} end
if known[2] ~= ARGV[3] then return {'sequence', known[2] or '0'} end

-- What is there before, to come back to. Functions take some thousand arguments at most.
local CHUNK = 1000
local before = {}
for first = 4, #ARGV, 2 * CHUNK do
  local keys = {}
  for index = first, math.min(first + 2 * CHUNK - 1, #ARGV), 2 do keys[#keys + 1] = ARGV[index] end
  local found = redis.call('HMGET', KEYS[2], unpack(keys))
  for index = 1, #keys do before[#before + 1] = found[index] end
end

local rejected = {'rejected'}
local failure = nil
local last = 3
for index = 4, #ARGV, 2 do
  local sum = redis.pcall('HINCRBY', KEYS[2], ARGV[index], ARGV[index + 1])
  if type(sum) == 'table' and sum.err then
    if string.find(sum.err, 'overflow', 1, true) or string.find(sum.err, 'not an integer', 1, true) then
      rejected[#rejected + 1] = tostring((index - 4) / 2)
      rejected[#rejected + 1] = sum.err
    else
      failure = sum.err
      break
    end
  end
  last = index
end

if failure or #rejected > 1 then
  for index = 4, last, 2 do
    local position = before[(index - 2) / 2]
    if position then
      redis.call('HSET', KEYS[2], ARGV[index], position)
    else
      redis.call('HDEL', KEYS[2], ARGV[index])
    end
  end
  if failure then return {'failed', failure} end
  return rejected
end

redis.call('HSET', KEYS[1], 'sequence', ARGV[2])
return {'applied'}
