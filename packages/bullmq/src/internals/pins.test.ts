// Pins what Bullpen relies on in BullMQ: each of these tests fails if a new version of BullMQ behaves differently.
import { eventually } from '@bullpen/testkit'
import { Queue, Worker } from 'bullmq'
import { Redis } from 'ioredis'
import { describe, expect, it, onTestFinished } from 'vitest'
import { prefixOf } from '../keys.ts'
import { setup } from '../setup.fixture.ts'

describe('BullMQ', () => {
  async function queueOf({ redisUrl, namespace }: { redisUrl: string; namespace: string }) {
    const connection = new Redis(redisUrl, { maxRetriesPerRequest: null })
    const options = { connection, prefix: prefixOf(namespace, 'rig') }
    const queue = new Queue('rig', options)
    onTestFinished(async () => {
      await queue.close()
      connection.disconnect()
    })
    return { queue, options, connection }
  }

  it('stores the due time of a delayed job in the bits of its score above the twelfth', async () => {
    const { queue, connection } = await queueOf(await setup())
    const before = Date.now()
    const { id = '' } = await queue.add('x', {}, { delay: 5_000 })
    const due = Math.floor(Number(await connection.zscore(queue.toKey('delayed'), id)) / 0x1000)
    expect(due).toBeGreaterThanOrEqual(before + 5_000)
    expect(due).toBeLessThanOrEqual(Date.now() + 5_000)
  })

  it('stores the stack of a thrown error with the transition, asks the strategy for the delay, and reads -1 as final', async () => {
    const { queue, options, connection } = await queueOf(await setup())
    const asked: string[] = []
    const settings = {
      backoffStrategy: (_: number, type: string | undefined, error?: Error) => {
        asked.push(`${type} ${error?.message}`)
        return -1
      },
    }
    const worker = new Worker(
      'rig',
      async () => {
        throw Object.assign(new Error('said'), { stack: 'first line\nrest' })
      },
      { ...options, settings },
    )
    onTestFinished(() => worker.close())
    const job = await queue.add('x', {}, { attempts: 5, backoff: { type: 'bullpen' } })
    await eventually(async () => (await job.getState()) === 'failed')
    expect(asked).toEqual(['bullpen said'])
    expect(JSON.parse((await connection.hget(queue.toKey(job.id ?? ''), 'stacktrace')) ?? '')).toEqual([
      'first line\nrest',
    ])
  })
})
