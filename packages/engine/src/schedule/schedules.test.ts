// Tests what a request does to a schedule while a process is storing it, or has stored it without noting it, because the store was away.
import { createHash, randomBytes } from 'node:crypto'
import { defineSchedule, defineTask } from '@bullpen/contract'
import { expect, test } from 'vitest'
import { z } from 'zod'
import type { ScheduleStore, StoredSchedule } from '../ports/broker/schedules.ts'
import { declared, type Editions } from './editions.ts'
import { createSchedules } from './schedules.ts'

const report = defineTask({ name: 'report.create', queue: 'reports', input: z.object({}), output: z.null() })
const nightly = (hour: number) =>
  defineSchedule({ name: 'nightly', task: report, input: {}, cron: `0 ${hour} * * *`, overlap: 'skip' })
const CATALOGUE = { by: 'catalogue' }

/** The schedules of a store that is away when a process notes the first schedule that it has stored. */
async function halfDeclared() {
  const kept = new Map<string, StoredSchedule>()
  let [editions, isAway]: [Editions, boolean] = [new Map(), true]
  const unused = () => Promise.reject(new Error('not called'))
  const store: ScheduleStore = {
    ...{ due: unused, troubles: unused },
    now: async () => 0,
    all: async () => [...kept.values()],
    async write({ name, record, token }) {
      if (record === undefined) kept.delete(name)
      else kept.set(name, { record, token, now: 0, lastStatus: undefined })
      return 'written'
    },
    async declare(own) {
      editions = declared(editions, own, 0)
      return editions
    },
    async stored({ name, digest }) {
      if (isAway) throw new Error('the store is away')
      editions = new Map([...editions, [name, digest]])
    },
  }
  const sha256 = (text: string) => createHash('sha256').update(text).digest()
  const schedules = createSchedules({ store, randomBytes, sha256, onChanged: () => {} })
  await expect(schedules.declare([nightly(3)], CATALOGUE)).rejects.toThrow('the store is away')
  isAway = false
  return { schedules, store, kept }
}

test('a schedule that a request deletes stays deleted when the process tries again', async () => {
  const { schedules } = await halfDeclared()
  await schedules.remove('nightly')
  expect(await schedules.declare([nightly(3)], CATALOGUE)).toEqual([])
  expect(await schedules.list()).toEqual([])
})

test('a schedule that a request changes stays changed when the process tries again', async () => {
  const { schedules } = await halfDeclared()
  await schedules.put(nightly(4), { source: 'api', by: 'ann' })
  expect(await schedules.declare([nightly(3)], CATALOGUE)).toEqual([])
  expect((await schedules.find('nightly')).record).toMatchObject({ changedBy: 'ann' })
})

test('a schedule that is stored while a request deletes it is reported as deleted only if it was', async () => {
  const { schedules, store, kept } = await halfDeclared()
  const { all } = store
  const [found] = await all()
  kept.clear()
  store.all = async () => {
    const read = await all()
    // The process stores the schedule once the request has read the schedules.
    if (found !== undefined) kept.set('nightly', found)
    return read
  }
  await expect(schedules.remove('nightly')).rejects.toMatchObject({ code: 'schedule_not_found' })
  expect(kept.size).toBe(1)
})
