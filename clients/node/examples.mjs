// Runs named examples one after the other and prints how many passed.

const SECONDS_PER_EXAMPLE = 60;

export async function run(examples) {
  let passed = 0;
  let failed = 0;
  for (const [name, example] of Object.entries(examples)) {
    let timer;
    const tooLong = new Promise((_, reject) => {
      timer = setTimeout(() => reject(new Error("no answer")), SECONDS_PER_EXAMPLE * 1000);
    });
    try {
      await Promise.race([example(), tooLong]);
      passed += 1;
    } catch (error) {
      failed += 1;
      console.log(`FAILED ${name}: ${error.stack}`);
    }
    clearTimeout(timer);
  }
  console.log(`${passed} passed, ${failed} failed`);
  process.exit(failed === 0 ? 0 : 1);
}
