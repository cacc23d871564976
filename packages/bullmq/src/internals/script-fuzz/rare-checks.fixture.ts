// What the fuzz checks only now and then, because it takes many calls: what the broker says of every task, that each key and entry has an
// owner, and that groups have counted their members.

import type { TaskId } from '@bullpen/contract'
import { END_LETTERS } from '../../groups/end-letters.ts'
import { END_CODES } from '../../groups/group-record.ts'
import { groupKeys, queueKeys } from '../../keys.ts'
import { readEntries } from '../../orphans/entry-page.ts'
import { statesOf } from '../../orphans/ownership.ts'
import { entrySuspect, patternOf, STRUCTURES, suspectOf } from '../../orphans/stored-key.ts'
import { runScript } from '../../scripts/script.ts'
import { readMembersScript } from '../../store/scripts.ts'
import { statusesOf, wrongListings } from '../index-model/full-scan.fixture.ts'
import { QUEUE } from '../index-model/worker.fixture.ts'
import { wrongHead } from '../turns/lane-scan.fixture.ts'
import { type FuzzWorld, OTHER_QUEUE } from './fuzz-world.fixture.ts'
import type { Moment } from './moment.fixture.ts'

/** How often everything is read again, because entries of groups and runs may have been delivered meanwhile. */
const MAX_TRIES = 5

export async function rareViolations(world: FuzzWorld, read: () => Promise<Moment>): Promise<string[]> {
  for (let tries = 1; ; tries++) {
    const found = await violationsAt(world, await read())
    if (found.length === 0 || tries === MAX_TRIES) return found
  }
}

async function violationsAt(world: FuzzWorld, moment: Moment): Promise<string[]> {
  return [
    ...(await wrongStatuses(world, moment)),
    ...(await wrongListings(world.broker, QUEUE, moment.scan)),
    ...(await ownerless(world)),
    ...(await wrongGroups(world)),
    ...(moment.rest.isLimited ? [] : await wrongHead(world.redis, world.keys, moment.lanes)),
  ]
}

/** Returns the tasks of which the broker says something else than their places. A cancel rule hides the tasks that it matches. */
async function wrongStatuses({ broker, unlocked }: FuzzWorld, { scan }: Moment): Promise<string[]> {
  const placed = new Map([...statusesOf(scan)].flatMap(([status, ids]) => ids.map((id) => [id, status] as const)))
  const found = await Promise.all(
    [...placed].map(async ([id, status]) => {
      const said = (await broker.find(id as TaskId).catch(() => undefined))?.status
      // The broker shows an active task whose lock has gone as waiting.
      const isHidden = (scan.rules > 0 && said === 'cancelled') || unlocked.has(id)
      return said === undefined || said === status || isHidden
        ? []
        : [`${id} is ${status}, and the broker says ${said}`]
    }),
  )
  return found.flat()
}

/** BullMQ's marks stay until the next check. */
const UNCHECKED: readonly string[] = ['stalled']

async function ownerless({ redis, namespace }: FuzzWorld): Promise<string[]> {
  const keys = await redis.keys(patternOf(namespace).replace('[.:}]', '*'))
  const suspects = keys.flatMap((key) => suspectOf(namespace, key) ?? [])
  for (const queue of [QUEUE, OTHER_QUEUE]) {
    for (const structure of STRUCTURES) {
      if (structure.entriesLeftToLeader || UNCHECKED.includes(structure.pattern)) continue
      const key = structure.keyOf(queueKeys(namespace, queue))
      const { entries } = await readEntries(redis, key, structure.type, '0')
      suspects.push(...entries.map((entry) => entrySuspect(namespace, queue, structure, entry)))
    }
  }
  const states = await statesOf(
    { redis, call: (run) => run() },
    suspects.map(({ subject }) => subject),
  )
  return [...states].flatMap(([{ key, entry }, state]) =>
    state === 'owned' ? [] : [`${key} ${entry?.name ?? ''}: ${state}`],
  )
}

async function wrongGroups({ redis, namespace, groups }: FuzzWorld): Promise<string[]> {
  const found: string[] = []
  for (const id of groups.slice(-2)) {
    const keys = groupKeys(namespace, id)
    const [fields, codes] = await runScript(redis, readMembersScript, keys, { from: 0, limit: 200 })
    const stored = (name: string): number => Number(fields[fields.indexOf(name) + 1] ?? 0)
    for (const [end, letter] of Object.entries(END_LETTERS)) {
      const counted = fields.includes(letter) ? stored(letter) : 0
      const is = codes.filter((code) => END_CODES[code] === end).length
      // A group shows at most 200 members.
      if (codes.length < 200 && counted !== is) found.push(`${id} counts ${counted} ${end} members, ${is} are`)
    }
  }
  return found
}
