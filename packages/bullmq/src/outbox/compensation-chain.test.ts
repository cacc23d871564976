// Tests that the compensations of a task run one after another, each once, although a compensation may die and be retried.
import { expect, it } from 'vitest'
import { newOne, queueOfMoves } from '../store/move-batch.fixture.ts'

it.each([1, 2])('a dead compensation with follow-ups of its own releases the %i after it once', async (count) => {
  const { add, start, moves, redis, keys } = queueOfMoves()
  const task = newOne()
  const { id } = task
  await add([task])
  const own = 'f{"task":"report"}'
  const after = Array.from({ length: count }, (_, i) => `n{"task":"undo-${i}"}`)
  await redis.hset(keys.job(id), { atEnd: '+', followUps: [own, ...after].join('\n') })
  await start('token')
  const end = { id, verdict: 'dead', value: 'why', more: ['maxAttempts', 1], fields: undefined } as const
  const ended = { id, token: 'token', verdict: 'dead', fencingToken: 1 } as const
  await moves(Date.now(), [{ token: 'token', starts: false, end: { ...end, more: [...end.more], end: ended } }])
  const entries = (await redis.xrange(keys.outbox, '-', '+')).map(([, [, text = '']]) => text.split(' 1 ')[1])
  const [last = '', ...others] = after.toReversed().map((line) => line.slice(1))
  expect(entries).toEqual(['f1 {"task":"report"}', [`n ${last}`, ...others.map((each) => `n${each}`)].join('\n')])
  // If the task is retried and dies again, only its own follow-up is released again.
  expect(await redis.hget(keys.job(id), 'followUps')).toBe(own)
})
