// A process with a thread in which WebAssembly calls JavaScript as many times as the argument specifies. Prints the number of
// calls.
import { openSetup, outputOf } from './setup.fixture.ts'
import * as tasks from './tasks.fixture.ts'

await using setup = openSetup('thread')
console.log(JSON.stringify(await outputOf(setup.run(tasks.wasm, { calls: Number(process.argv[2]) }))))
