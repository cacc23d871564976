// Tests that an API stores the schedules of its catalogue when it starts, without a worker or a sync.
import { randomUUID } from 'node:crypto'
import { openBroker } from '@bullpen/bullmq'
import { defineCatalogue, defineSchedule, defineTask } from '@bullpen/contract'
import { privateRedis } from '@bullpen/testing'
import { eventually } from '@bullpen/testkit'
import { inject, onTestFinished, test } from 'vitest'
import { z } from 'zod'
import { createApi } from './create-api.ts'

const report = defineTask({ name: 'report.create', queue: 'reports', input: z.object({}), output: z.null() })
const nightly = defineSchedule({ name: 'nightly', task: report, input: {}, cron: '0 3 * * *' })
const catalogue = defineCatalogue(report, nightly)
const silent = { debug() {}, info() {}, warn() {}, error() {} }

async function start(redisUrl: string) {
  const common = { redisUrl, namespace: `t-${randomUUID().slice(0, 8)}` }
  const config = { ...common, keys: ['stored-schedules-0123456789'], port: 0, metricsPort: 0 }
  const api = await createApi({ catalogue, log: silent, config })
  onTestFinished(() => api.close())
  await api.listen()
  return async (): Promise<void> => {
    const broker = openBroker({ ...common, queues: catalogue.queues, sizeLimit: 1, leads: false, log: silent })
    onTestFinished(() => broker.close())
    await eventually(async () => {
      const all = await broker.schedules.list().catch(() => [])
      return all.map(({ record }) => record.name).join() === nightly.name
    })
  }
}

test('an API that starts alone stores the schedules of its catalogue', async () => {
  const untilStored = await start(inject('redisUrl'))
  await untilStored()
})

test('an API that starts without Redis opens its ports, and stores its schedules once Redis is reachable', async () => {
  const redis = await privateRedis()
  const untilStored = await start(redis.url)
  await redis.start()
  await untilStored()
})
