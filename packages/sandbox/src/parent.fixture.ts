// A process with one child. It prints the child's process id, or that of a program which the child has started, once the child is doing
// what the arguments specify.
import { openSetup, outputOf } from './setup.fixture.ts'
import * as tasks from './tasks.fixture.ts'

const { run } = openSetup('process')
if (process.argv[2] === 'idle') console.log((await outputOf<{ pid: number }>(run(tasks.where))).pid)
if (process.argv[2]?.startsWith('program'))
  console.log((await run(tasks.program, { next: process.argv[3] }).logged('started'))['pid'])
if (process.argv[2] === 'loop') console.log((await run(tasks.loop).logged('looping'))['pid'])
if (process.argv[2] === 'wait') console.log((await run(tasks.wait, { for: 'nothing' }).logged('waiting'))['pid'])
