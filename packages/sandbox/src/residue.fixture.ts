// A process that prints its open handles before, while and after it runs tasks in isolates, some of which crash.
import { existsSync, readdirSync, readFileSync } from 'node:fs'
import { getActiveResourcesInfo } from 'node:process'
import { setImmediate } from 'node:timers/promises'
import type { IsolatedTask } from '@bullpen/engine/internal'
import { openSetup } from './setup.fixture.ts'
import * as tasks from './tasks.fixture.ts'

const isolation: IsolatedTask['isolation'] = process.argv[2] === 'thread' ? 'thread' : 'process'

/** Returns all processes whose parent is this process. */
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
const setup = openSetup(isolation, { threads: { max: 3 }, processes: { max: 3 } })
const looping = setup.run(tasks.loop)
await looping.logged('looping')
await Promise.all([setup.run(tasks.exit, { code: 3 }).outcome, setup.run(tasks.where).outcome])
const during = getActiveResourcesInfo()
await setup.isolator.close()
// The event loop releases closed handles in the last phase of each turn, which comes after the immediates.
await setImmediate()
await setImmediate()
const after = getActiveResourcesInfo()
console.log(JSON.stringify({ before, during, after, children: children() }))
