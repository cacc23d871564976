// Tests what the error of a failed enqueue says about its effect.
import { randomBytes } from 'node:crypto'
import { createTaskId } from '@bullpen/contract/internal'
import { newTask } from '@bullpen/engine/internal'
import { faultProxy } from '@bullpen/testkit'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { setup, short } from '../setup.fixture.ts'

const TURN = { key: 'acme', weight: 1 }

const aTask = () =>
  newTask(short, {}, {}, { id: createTaskId('rig', 0, randomBytes(10)), enqueuedAt: 0, correlationId: undefined })

describe('an enqueue that fails because Redis does not respond', () => {
  async function silentRedis() {
    const proxy = await faultProxy(inject('redisUrl'))
    onTestFinished(() => proxy.close())
    const { broker, enqueue } = await setup({ redisUrl: proxy.url })
    onTestFinished(() => proxy.reset())
    // After this call, the broker knows everything that a task without a turn depends on.
    await enqueue(short)
    proxy.cutAnswers()
    return broker
  }

  it('had no effect if the workers of the queue could not be read before the task was sent', async () => {
    const broker = await silentRedis()
    const error = { code: 'redis_unavailable', hadNoEffect: true }
    const task = { ...aTask(), turn: TURN }
    await expect(broker.enqueue(task)).rejects.toMatchObject(error)
    await expect(broker.enqueueAll([task])).rejects.toMatchObject(error)
    expect(await broker.enqueueBulk([task])).toMatchObject([{ reason: error }])
  })

  it('may have had an effect if the task was sent', async () => {
    const broker = await silentRedis()
    const error = { code: 'redis_unavailable', hadNoEffect: false }
    await expect(broker.enqueue(aTask())).rejects.toMatchObject(error)
    await expect(broker.enqueueAll([aTask()])).rejects.toMatchObject(error)
  })
})
