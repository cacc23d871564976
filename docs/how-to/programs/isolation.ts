import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import handleCount, { count } from './isolated-count.ts'

const catalogue = defineCatalogue(count)
const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-isolation', logLevel: 'silent' } as const
const key = randomUUID()
const worker = createWorker({
  catalogue,
  handlers: { 'primes.count': handleCount },
  config: { ...config, port: 0, pools: { cpu: 2 } },
})
const api = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
await worker.start()
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })

const hoarding = await client.enqueue(count, { below: 10, hoard: true })
const fine = await client.enqueue(count, { below: 100_000 })
const endless = await client.enqueue(count, { below: Number.MAX_SAFE_INTEGER }, { timeout: '2s' })

console.log(await fine.result({ timeout: '30s' }))
for (const failing of [hoarding, endless]) {
  const task = await failing.waitUntilFinished({ timeout: '30s' })
  console.log(task.status, task.error?.code)
}

await api.close()
await worker.drain()
