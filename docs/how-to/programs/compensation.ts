import { redis } from '@bullpen/bullmq'
import { createClient } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask, TaskError } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { z } from 'zod'

const trip = z.object({ trip: z.int() })
const book = defineTask({ name: 'trip.book', queue: 'trips', input: trip })
const cancelFlight = defineTask({ name: 'flight.cancel', queue: 'flights', input: trip })
const cancelHotel = defineTask({ name: 'hotel.cancel', queue: 'hotels', input: trip })
const catalogue = defineCatalogue(book, cancelFlight, cancelHotel)

const undone = Promise.withResolvers<void>()
const handlers = {
  'trip.book': defineHandler(book, import.meta.url, async ({ input, compensate }) => {
    await compensate(cancelFlight, input)
    console.log('booked the flight')
    await compensate(cancelHotel, input)
    console.log('booked the hotel')
    if (input.trip === 13) throw new TaskError('declined', 'the card was declined', { retryable: false })
  }),
  'hotel.cancel': defineHandler(cancelHotel, import.meta.url, () =>
    console.log('cancelled the hotel, if it was booked'),
  ),
  'flight.cancel': defineHandler(cancelFlight, import.meta.url, () => {
    console.log('cancelled the flight, if it was booked')
    undone.resolve()
  }),
}

const config = { redisUrl: process.env['REDIS_URL'] ?? 'redis://127.0.0.1:6379', namespace: 'how-to-compensation' }
const worker = createWorker({ catalogue, handlers, config: { ...config, logLevel: 'silent', port: 0 } })
await worker.start()
const client = createClient({ transport: redis(config.redisUrl, { catalogue, namespace: config.namespace }) })

const task = await client.enqueue(book, { trip: 13 })
await undone.promise
console.log('the trip is', (await task.waitUntilFinished()).status)

await client.close()
await worker.drain()
