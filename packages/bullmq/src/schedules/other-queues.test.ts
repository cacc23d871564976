// Schedules of queues that a process's catalogue does not contain, because a deployment has renamed or removed the queue.
import { randomUUID } from 'node:crypto'
import { defineSchedule, defineTask } from '@bullpen/contract'
import type { PayloadCodec } from '@bullpen/engine'
import { eventually } from '@bullpen/testkit'
import { inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { openPatientBroker } from '../broker/patient-broker.fixture.ts'
import { silent } from '../setup.fixture.ts'

/** Returns the broker of a process whose catalogue has one queue, and a function that defines a schedule in this queue. */
async function processOf(namespace: string, queue: string, codec?: PayloadCodec) {
  const redisUrl = inject('redisUrl')
  const common = { redisUrl, namespace, sizeLimit: 10_000, leads: false, log: silent }
  const broker = openPatientBroker({ ...common, queues: [queue], codec })
  onTestFinished(() => broker.close())
  await eventually(() => broker.ping().then(() => true))
  const task = defineTask({ name: 'test.tick', queue, input: z.object({}) })
  const schedule = (name: string) => defineSchedule({ name, task, input: {}, cron: '0 0 1 1 *' })
  const sync = async (...names: readonly string[]) =>
    (await broker.schedules.sync(names.map(schedule), { by: 'deploy', dryRun: false })).map(
      ({ name, queue: of, action }) => `${name} in ${of} ${action}`,
    )
  const list = async () => (await broker.schedules.list()).map(({ record }) => `${record.name} in ${record.queue}`)
  return { broker, schedule, sync, list }
}

const freshNamespace = (): string => `t-${randomUUID().slice(0, 12)}`

test('a sync deletes the schedule in the old queue if a queue was renamed', async ({ expect }) => {
  const namespace = freshNamespace()
  await (await processOf(namespace, 'old')).sync('tick')
  const renamed = await processOf(namespace, 'new')
  expect(await renamed.sync('tick')).toEqual(['tick in old deleted', 'tick in new created'])
  expect(await renamed.list()).toEqual(['tick in new'])
})

test('the schedules of a queue that is no longer in the catalogue are listed, controlled and deleted', async ({
  expect,
}) => {
  const namespace = freshNamespace()
  await (await processOf(namespace, 'old')).sync('tick')
  const { broker, list } = await processOf(namespace, 'new')
  expect(await list()).toEqual(['tick in old'])
  expect((await broker.schedules.pause('tick', 'ann')).record.paused).toMatchObject({ by: 'ann' })
  await broker.schedules.remove('tick')
  expect(await list()).toEqual([])
})

test('a sync leaves the schedules of another catalogue alone, and their names are taken', async ({ expect }) => {
  const namespace = freshNamespace()
  const one = await processOf(namespace, 'one')
  const two = await processOf(namespace, 'two')
  expect(await one.sync('first')).toEqual(['first in one created'])
  expect(await two.sync('second')).toEqual(['second in two created'])
  expect(await one.sync('first')).toEqual(['first in one unchanged'])
  expect(await one.list()).toEqual(['first in one', 'second in two'])
  await expect(two.broker.schedules.put(two.schedule('first'), { source: 'api', by: 'ann' })).rejects.toMatchObject({
    code: 'schedule_name_taken',
  })
})

test('the schedules of another catalogue may need a codec that this process does not have', async ({ expect }) => {
  const namespace = freshNamespace()
  const reverse = (text: string): string => [...text].reverse().join('')
  const one = await processOf(namespace, 'one', { encode: reverse, decode: reverse })
  const two = await processOf(namespace, 'two')
  await one.sync('first')
  expect(await two.sync('second')).toEqual(['second in two created'])
  expect(await two.list()).toEqual(['first in one', 'second in two'])
})
