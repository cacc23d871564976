// Tests tasks whose names other queues use, or JavaScript.
import { randomUUID } from 'node:crypto'
import { redis } from '@bullpen/bullmq'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { expect, inject, it, onTestFinished } from 'vitest'
import { z } from 'zod'
import { createClient } from './index.ts'

it('tasks with names of object methods, and names that differ only in case, run with their own handlers', async () => {
  const names = ['constructor', 'toString', 'hasOwnProperty', 'sendWelcome', 'SendWelcome', 'send_email.', 'digest']
  const tasks = names.map((name) => defineTask({ name, queue: 'mail', input: z.string(), output: z.string() }))
  const [first, ...others] = tasks
  if (first === undefined) throw new Error('there are no tasks')
  const catalogue = defineCatalogue(first, ...others)
  const common = { redisUrl: inject('redisUrl'), namespace: `t-${randomUUID().slice(0, 12)}` }
  const handlers = tasks.map((task) => [
    task.name,
    defineHandler(task, import.meta.url, async ({ input }) => `${task.name} ${input}`),
  ])
  const config = { ...common, port: 0, logLevel: 'silent' } as const
  expect(() => createWorker({ catalogue, handlers: Object.fromEntries(handlers.slice(1)), config })).toThrow(
    'task constructor has no handler',
  )
  const worker = createWorker({ catalogue, handlers: Object.fromEntries(handlers), config })
  await worker.start()
  onTestFinished(async () => void (await worker.drain()))
  const { redisUrl, namespace } = common
  const client = createClient({ transport: redis(redisUrl, { namespace, catalogue }) })
  onTestFinished(() => client.close())
  for (const task of tasks) {
    const enqueued = await client.enqueue(task, 'x')
    expect(await enqueued.result({ timeout: '2m' })).toBe(`${task.name} x`)
  }
})
