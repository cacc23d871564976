// What a measurement does if the server refuses requests.
import { Redis } from 'ioredis'
import { expect, inject, it, onTestFinished } from 'vitest'
import type { Load } from '../measuring/meter.ts'
import type { Part } from '../measuring/part.ts'
import { measure } from './measurement.ts'

/** Measures a load that has counted this. */
async function measured(counted: Pick<Load, 'requests' | 'refused'>) {
  const redis = new Redis(inject('redisUrl'), { maxRetriesPerRequest: null })
  onTestFinished(() => redis.disconnect())
  let periods = 0
  const end = () => {
    periods += 1
    return { ...counted, tasks: counted.requests, lastRefusal: 'HTTP/1.1 503', seconds: 2, p50Ms: 1, p99Ms: 1 }
  }
  const ask = (async (question) => (question === 'end' ? end() : 0)) as Part<unknown>['ask']
  const subject = { enqueuing: { ask }, load: { ask }, redis, warmUpMs: 0, measureMs: 1 }
  return await measure(subject).then(
    ({ rate }) => ({ rate, periods }),
    (error: Error) => ({ failure: error.message, periods }),
  )
}

it('a measurement leaves out a few refused requests', async () => {
  expect(await measured({ requests: 99, refused: 1 })).toEqual({ rate: 49.5, periods: 1 })
})

it('a measurement fails if more than 1 % of the requests were refused', async () => {
  const failure = 'the server refused 2 of 100 requests, the last one with:\nHTTP/1.1 503'
  expect(await measured({ requests: 98, refused: 2 })).toEqual({ failure, periods: 1 })
})

it('a measurement fails after several periods in which every request was refused', async () => {
  const failure = 'the server refused 7 of 7 requests, the last one with:\nHTTP/1.1 503'
  expect(await measured({ requests: 0, refused: 7 })).toEqual({ failure, periods: 5 })
})
