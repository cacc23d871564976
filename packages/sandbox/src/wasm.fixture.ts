// A process with a thread in which WebAssembly calls JavaScript as often as the argument says; prints how often it did.
import { openRig, outputOf } from './rig.fixture.ts'
import * as tasks from './tasks.fixture.ts'

await using rig = openRig('thread')
console.log(JSON.stringify(await outputOf(rig.run(tasks.wasm, { calls: Number(process.argv[2]) }))))
