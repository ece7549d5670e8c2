-- Builds what scripts see: globals that cannot be changed, and libraries without a way out.
--
-- A table that scripts cannot change is empty, and looks its fields up in the real one, which no script can
-- reach. What would bypass the lookup (`rawset`, `next`, `table.insert` …) knows such tables.
local host = ...

local rawpcall, rawxpcall, rawerror, rawresume = pcall, xpcall, error, coroutine.resume
local rawnext, rawpairs, rawset, rawget, type, select = next, pairs, rawset, rawget, type, select
local rawsetmetatable, setfenv, loadstring, collectgarbage = setmetatable, setfenv, loadstring, collectgarbage
local sub, byte, lower, find = string.sub, string.byte, string.lower, string.find
local concat, floor = table.concat, math.floor
local killed, in_c = host.killed, host.in_c

-- The real table of each protected one.
local real_of = rawsetmetatable({}, { __mode = 'k' })

local function refuse_change()
  rawerror('Attempt to modify a readonly table', 3)
end

local function protect(real)
  local shown = {}
  real_of[shown] = real
  return rawsetmetatable(shown, {
    __index = real,
    __newindex = function() rawerror('Attempt to modify a readonly table', 2) end,
    __metatable = false,
  })
end

-- A script that must end raises this wherever it tries to go on.
local function checked(...)
  local reason = killed()
  if reason then rawerror(reason, 0) end
  return ...
end

local function copied(from, names)
  local to = {}
  for name in string.gmatch(names, '%a[%w_]*') do to[name] = from[name] end
  return to
end

local strings = copied(string, 'byte char format len lower reverse sub upper')
for _, name in ipairs({ 'rep', 'find', 'match' }) do strings[name] = host.strings[name] end
local gmatch_step, gsub_step, gsub_text = host.strings.gmatch_step, host.strings.gsub_step, host.strings.gsub_text

function strings.dump()
  rawerror('unable to dump given function', 2)
end

function strings.gmatch(text, pattern)
  gmatch_step(text, pattern, 1e15)
  local at = 0
  local function take(next_at, ...)
    if not next_at then
      at = 1e15
      return nil
    end
    at = next_at
    return ...
  end
  return function() return take(gmatch_step(text, pattern, at)) end
end
strings.gfind = strings.gmatch

function strings.gsub(text, pattern, replacement, most)
  local kind = type(replacement)
  if kind == 'string' or kind == 'number' then return gsub_text(text, pattern, replacement, most) end
  if kind ~= 'function' and kind ~= 'table' then
    rawerror("bad argument #3 to 'gsub' (string/function/table expected)", 2)
  end
  text = text .. ''
  most = most and most + 0 or #text + 1
  local parts, count, at = {}, 0, 0
  local is_anchored = sub(pattern, 1, 1) == '^'
  local function replace(start, stop, ...)
    if not start then return false end
    count = count + 1
    parts[#parts + 1] = sub(text, at + 1, start)
    local value
    if kind == 'function' then value = replacement(...) else value = replacement[(...)] end
    if not value then
      value = sub(text, start + 1, stop)
    elseif type(value) ~= 'string' and type(value) ~= 'number' then
      rawerror('invalid replacement value (a ' .. type(value) .. ')', 0)
    end
    parts[#parts + 1] = value
    if stop > start then
      at = stop
    else
      parts[#parts + 1] = sub(text, start + 1, start + 1)
      at = start + 1
    end
    return at <= #text and not is_anchored
  end
  while count < most and replace(gsub_step(text, pattern, at)) do end
  parts[#parts + 1] = sub(text, at + 1)
  return concat(parts), count
end

local tables = copied(table, 'concat foreach foreachi getn maxn remove setn sort')
local insert = table.insert
function tables.insert(list, at, ...)
  if real_of[list] then refuse_change() end
  if select('#', ...) > 0 then
    -- Lua moves every place from there on.
    local place = tonumber(at)
    if place and not (place >= 0 and place < 2147483647) then
      rawerror("bad argument #2 to 'insert' (position out of bounds)", 2)
    end
    return insert(list, at, ...)
  end
  return insert(list, at)
end
for _, name in ipairs({ 'remove', 'sort', 'setn' }) do
  local change = tables[name]
  tables[name] = function(list, ...)
    if real_of[list] then refuse_change() end
    return change(list, ...)
  end
end

local maths = copied(math, [[abs acos asin atan atan2 ceil cos cosh deg exp floor fmod frexp huge ldexp log log10 max
  min mod modf pi pow rad sin sinh sqrt tan tanh]])
maths.random, maths.randomseed = host.random, host.randomseed

local coroutines = copied(coroutine, 'create running status wrap yield')
function coroutines.resume(...)
  return checked(rawresume(...))
end

local redis = host.redis
redis.call, redis.pcall = host.call, host.pcall
redis.LOG_DEBUG, redis.LOG_VERBOSE, redis.LOG_NOTICE, redis.LOG_WARNING = 0, 1, 2, 3
redis.REPL_NONE, redis.REPL_AOF, redis.REPL_SLAVE, redis.REPL_REPLICA, redis.REPL_ALL = 0, 1, 2, 2, 3

local function fail(text)
  rawerror({ err = 'ERR ' .. text }, 0)
end

local function single(field)
  return function(...)
    local text = ...
    if select('#', ...) ~= 1 or type(text) ~= 'string' then
      return { err = 'ERR wrong number or type of arguments' }
    end
    return field(text)
  end
end

redis.status_reply = single(function(text) return { ok = text } end)
redis.error_reply = single(function(text)
  if sub(text, 1, 1) == '-' then text = sub(text, 2) end
  while byte(text, -1) == 10 or byte(text, -1) == 13 do text = sub(text, 1, -2) end
  if not string.find(text, ' ', 1, true) then text = 'ERR ' .. text end
  return { err = text }
end)

function redis.sha1hex(...)
  if select('#', ...) ~= 1 then fail('wrong number of arguments') end
  local text = ...
  return host.sha1hex(type(text) == 'number' and text .. '' or type(text) == 'string' and text or '')
end

function redis.log(level, ...)
  if select('#', ...) == 0 then fail('redis.log() requires two arguments or more.') end
  if type(level) ~= 'number' then fail('First argument must be a number (log level).') end
  if level < 0 or level > 3 then fail('Invalid debug level.') end
  local words = {}
  for at = 1, select('#', ...) do
    local word = select(at, ...)
    if type(word) == 'string' or type(word) == 'number' then words[#words + 1] = word end
  end
  host.log(floor(level), concat(words, ' '))
end

function redis.setresp(...)
  if select('#', ...) ~= 1 then fail('redis.setresp() requires one argument.') end
  local version = ...
  if version ~= 2 and version ~= 3 then fail('RESP version must be 2 or 3.') end
  host.setresp(version == 3)
end

function redis.set_repl(...)
  if select('#', ...) ~= 1 then fail('redis.set_repl() requires two arguments.') end
  local flags = ...
  if type(flags) ~= 'number' or flags < 0 or flags > 3 or flags ~= floor(flags) then
    fail('Invalid replication flags. Use REPL_AOF, REPL_REPLICA, REPL_ALL or REPL_NONE.')
  end
end

function redis.replicate_commands() return true end
function redis.breakpoint() return false end
function redis.debug() end

function redis.acl_check_cmd(...)
  local name = ...
  if select('#', ...) == 0 then
    fail('Please specify at least one argument for this redis.acl_check_cmd() call')
  end
  if type(name) ~= 'string' and type(name) ~= 'number' then
    fail('redis.acl_check_cmd() command arguments must be strings or integers')
  end
  if not host.knows(name .. '') then fail('Invalid command passed to redis.acl_check_cmd()') end
  return true
end

-- A function in C has no place in a script's chain of calls, so what it raises has that of its caller.
for name, value in rawnext, redis do
  if type(value) == 'function' and name ~= 'call' and name ~= 'pcall' then redis[name] = in_c(value) end
end

local globals = {
  assert = assert, error = error, gcinfo = gcinfo, ipairs = ipairs, rawequal = rawequal, select = select,
  tonumber = tonumber, tostring = tostring, type = type, unpack = host.unpack, _VERSION = _VERSION,
  string = protect(strings), table = protect(tables), math = protect(maths), coroutine = protect(coroutines),
  redis = protect(redis), cjson = protect(host.cjson), cmsgpack = protect(host.cmsgpack),
  struct = protect(host.struct), bit = protect(host.bit),
}
local shown_globals = protect(globals)
globals._G = shown_globals

local nonexistent = {
  __index = function(_, name)
    rawerror("Script attempted to access nonexistent global variable '" .. tostring(name) .. "'", 2)
  end,
}
rawsetmetatable(globals, nonexistent)

-- As in Redis, a script catches the text of an error of a command.
local function caught(is_fine, ...)
  if is_fine then return true, ... end
  local raised = ...
  local text = type(raised) == 'table' and rawget(raised, 'err')
  if type(text) == 'string' or type(text) == 'number' then return false, text end
  return false, ...
end

function globals.pcall(...) return caught(checked(rawpcall(...))) end
function globals.xpcall(...) return checked(rawxpcall(...)) end

globals.setmetatable = in_c(function(subject, meta)
  if real_of[subject] then rawerror('Attempt to modify a readonly table', 0) end
  return rawsetmetatable(subject, meta)
end)

function globals.getmetatable(subject)
  return getmetatable(subject)
end

globals.rawset = in_c(function(subject, ...)
  if real_of[subject] then rawerror('Attempt to modify a readonly table', 0) end
  return rawset(subject, ...)
end)

function globals.rawget(subject, ...)
  return rawget(real_of[subject] or subject, ...)
end

function globals.next(subject, ...)
  return rawnext(real_of[subject] or subject, ...)
end

function globals.pairs(subject, ...)
  local real = real_of[subject]
  if real then
    return function(_, name) return rawnext(real, name) end, subject, nil
  end
  return rawpairs(subject, ...)
end

function globals.loadstring(text, name)
  if type(text) ~= 'string' then
    rawerror("bad argument #1 to 'loadstring' (string expected, got " .. type(text) .. ')', 2)
  end
  if byte(text) == 27 then return nil, 'bytecode is not loaded' end
  -- The parser uses the name while nothing but the stack keeps it, and reads it up to a zero.
  name = name or text
  local zero = find(name, '\0', 1, true)
  if zero then name = sub(name, 1, zero - 1) end
  local loaded, reason = loadstring(text, name)
  if not loaded then return nil, reason end
  return setfenv(loaded, shown_globals)
end

function globals.load(reader, name)
  local pieces, bytes = {}, 0
  while true do
    local piece = reader()
    if piece == nil or piece == '' then break end
    if type(piece) ~= 'string' then rawerror('reader function must return a string', 2) end
    pieces[#pieces + 1] = piece
  end
  return globals.loadstring(concat(pieces), name or '=(load)')
end

function globals.collectgarbage(what, ...)
  -- The collector is the interpreter's: no script stops it for the next one.
  if what == nil or what == 'collect' or what == 'count' or what == 'step' then
    return collectgarbage(what or 'collect', ...)
  end
  return 0
end

local function is_text(value)
  return type(value) == 'string' or type(value) == 'number'
end

local function named_function(named)
  if type(named) ~= 'table' then
    fail('calling redis.register_function with a single argument is only applicable to Lua table ' ..
      '(representing named arguments).')
  end
  local name, callback, description, flags
  for key, value in rawnext, named do
    if not is_text(key) then fail('named argument key given to redis.register_function is not a string') end
    key = lower(key)
    if key == 'function_name' then
      if not is_text(value) then
        fail('function_name argument given to redis.register_function must be a string')
      end
      name = value
    elseif key == 'description' then
      if not is_text(value) then
        fail('description argument given to redis.register_function must be a string')
      end
      description = value
    elseif key == 'callback' then
      if type(value) ~= 'function' then
        fail('callback argument given to redis.register_function must be a function')
      end
      callback = value
    elseif key == 'flags' then
      if type(value) ~= 'table' then
        fail('flags argument to redis.register_function must be a table representing function flags')
      end
      flags = {}
      for at, flag in ipairs(value) do
        if not is_text(flag) then fail('unknown flag given') end
        flags[at] = lower(flag)
      end
    else
      fail('unknown argument given to redis.register_function')
    end
  end
  if not name then fail('redis.register_function must get a function name argument') end
  if not callback then fail('redis.register_function must get a callback argument') end
  return name, callback, description, concat(flags or {}, '\0')
end

local is_registering, register = host.is_registering, host.register

local function register_function(...)
  if not is_registering() then fail('redis.register_function can only be called on FUNCTION LOAD command') end
  local count, name, callback = select('#', ...), ...
  local description, flags
  if count == 1 then
    name, callback, description, flags = named_function(name)
  elseif count ~= 2 then
    fail('wrong number of arguments to redis.register_function')
  elseif not is_text(name) then
    fail('first argument to redis.register_function must be a string')
  elseif type(callback) ~= 'function' then
    fail('second argument to redis.register_function must be a function')
  end
  local refusal = register(name, callback, description, flags or '')
  if refusal then fail(refusal) end
end

-- What a library sees while it is loaded.
local library_redis = { register_function = in_c(register_function) }
for _, name in ipairs({
  'log', 'LOG_DEBUG', 'LOG_VERBOSE', 'LOG_NOTICE', 'LOG_WARNING', 'REDIS_VERSION', 'REDIS_VERSION_NUM',
}) do
  library_redis[name] = redis[name]
end
rawsetmetatable(library_redis, nonexistent)
local library_globals = rawsetmetatable({ redis = protect(library_redis) }, nonexistent)

-- Returns the globals of a library, and a function that gives it the globals of scripts when it is loaded.
local function library_environment()
  local shown = {}
  real_of[shown] = globals
  local meta = {
    __index = library_globals,
    __newindex = function() rawerror('Attempt to modify a readonly table', 2) end,
    __metatable = false,
  }
  return rawsetmetatable(shown, meta), function() meta.__index = globals end
end

local texts = getmetatable('')
texts.__index = strings
texts.__metatable = protect({ __index = globals.string })

return globals, shown_globals, library_environment
