// A process with one child, whose id it prints once the child does what the first argument says.
import { openRig, outputOf } from './rig.fixture.ts'
import * as tasks from './tasks.fixture.ts'

const { run } = openRig('process')
if (process.argv[2] === 'idle') console.log((await outputOf<{ pid: number }>(run(tasks.where))).pid)
if (process.argv[2] === 'loop') console.log((await run(tasks.loop).said('looping'))['pid'])
if (process.argv[2] === 'wait') console.log((await run(tasks.wait, { for: 'nothing' }).said('waiting'))['pid'])
