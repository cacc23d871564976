// A process that says what it holds before, while and after it runs tasks in isolates, also ones that end badly.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { getActiveResourcesInfo } from 'node:process'
import { setImmediate } from 'node:timers/promises'
import type { IsolatedTask } from '@bullpen/engine/internal'
import { openRig } from './rig.fixture.ts'
import * as tasks from './tasks.fixture.ts'

const isolation: IsolatedTask['isolation'] = process.argv[2] === 'thread' ? 'thread' : 'process'

/** Processes of any kind whose parent this is. */
function children(): string[] {
  if (!existsSync('/proc')) return []
  const isOurs = (pid: string): boolean => {
    try {
      return new RegExp(`^PPid:\\s+${process.pid}$`, 'm').test(readFileSync(`/proc/${pid}/status`, 'utf8'))
    } catch {
      return false
    }
  }
  return readdirSync('/proc').filter((name) => /^\d+$/.test(name) && isOurs(name))
}

const before = getActiveResourcesInfo()
const rig = openRig(isolation, { threads: { max: 3 }, processes: { max: 3 } })
const looping = rig.run(tasks.loop)
await looping.said('looping')
await Promise.all([rig.run(tasks.exit, { code: 3 }).outcome, rig.run(tasks.where).outcome])
const during = getActiveResourcesInfo()
await rig.isolator.close()
// A turn of the event loop lets go of closed handles in its last phase, which comes after its immediates.
await setImmediate()
await setImmediate()
const after = getActiveResourcesInfo()
console.log(JSON.stringify({ before, during, after, children: children() }))
