// How calls are gathered: by turns of the event loop, while a batch is on its way, and only if Redis is near.
import { setImmediate as nextTurn } from 'node:timers/promises'
import { afterEach, beforeEach, expect, it, vi } from 'vitest'
import { createBatcher } from './batcher.ts'

beforeEach(() => vi.useFakeTimers({ toFake: ['performance'] }))
afterEach(() => vi.useRealTimers())

function stage() {
  const sent: string[][] = []
  const replies: (() => void)[] = []
  const enter = createBatcher<{ readonly name: string; readonly bytes: number }>((calls) => {
    sent.push(calls.map(({ name }) => name))
    return new Promise((resolve) => replies.push(resolve))
  })
  return {
    sent,
    call: (name: string, bytes = 1) => enter({ name, bytes }),
    /** Lets the oldest batch that is on its way be answered, this long after it was sent. */
    async reply(afterMs = 0) {
      vi.advanceTimersByTime(afterMs)
      replies.shift()?.()
      await nextTurn()
    },
  }
}

it('a lone call is sent at the end of its turn, and the calls of one turn are one batch', async () => {
  const { call, sent, reply } = stage()
  call('a')
  expect(sent).toEqual([])
  await nextTurn()
  expect(sent).toEqual([['a']])
  await reply()
  call('b')
  call('c')
  await nextTurn()
  expect(sent).toEqual([['a'], ['b', 'c']])
})

it('calls wait for a batch that is on its way if Redis is near, and a full batch does not', async () => {
  const { call, sent, reply } = stage()
  call('first')
  await nextTurn()
  await reply(1)
  call('a')
  await nextTurn()
  call('b')
  await nextTurn()
  call('c')
  await nextTurn()
  expect(sent).toEqual([['first'], ['a']])
  await reply(1)
  expect(sent.at(-1)).toEqual(['b', 'c'])
  for (let i = 0; i < 20; i++) call(`${i}`)
  // Before the end of the turn.
  expect(sent.at(-1)).toHaveLength(16)
  await nextTurn()
  await reply(1)
  await reply(1)
  expect(sent.at(-1)).toEqual(['16', '17', '18', '19'])
})

it('no call waits for another batch if Redis is far, or not known to be near', async () => {
  const { call, sent, reply } = stage()
  for (const name of ['a', 'b']) {
    call(name)
    await nextTurn()
  }
  expect(sent).toEqual([['a'], ['b']])
  await reply(20)
  await reply()
  call('c')
  await nextTurn()
  call('d')
  await nextTurn()
  expect(sent.slice(2)).toEqual([['c'], ['d']])
})

it('a batch is bounded in bytes, and a larger call is a batch of its own', async () => {
  const { call, sent } = stage()
  call('large', 300 * 1_024)
  call('half', 200 * 1_024)
  call('other half', 200 * 1_024)
  await nextTurn()
  expect(sent).toEqual([['large'], ['half'], ['other half']])
})
