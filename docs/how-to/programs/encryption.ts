import { createCipheriv, createDecipheriv, randomBytes, randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { createClient, http } from '@bullpen/client'
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { createWorker, type PayloadCodec } from '@bullpen/worker'
import { z } from 'zod'

/** AES-256-GCM. A stored payload is the nonce, the ciphertext and the tag, in base64. */
function encrypting(secret: Buffer): PayloadCodec {
  return {
    encode(json) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', secret, nonce)
      const text = Buffer.concat([cipher.update(json, 'utf8'), cipher.final()])
      return Buffer.concat([nonce, text, cipher.getAuthTag()]).toString('base64')
    },
    decode(stored) {
      const bytes = Buffer.from(stored, 'base64')
      const decipher = createDecipheriv('aes-256-gcm', secret, bytes.subarray(0, 12))
      decipher.setAuthTag(bytes.subarray(-16))
      return Buffer.concat([decipher.update(bytes.subarray(12, -16)), decipher.final()]).toString('utf8')
    },
  }
}

const report = defineTask({
  name: 'patients.report',
  queue: 'reports',
  input: z.object({ patient: z.string() }),
  output: z.object({ text: z.string() }),
})
const catalogue = defineCatalogue(report)

const handleReport = defineHandler(report, import.meta.url, ({ input }) => ({ text: `${input.patient} is well` }))

// In production, the secret comes from your secret store, and is the same in the API and in all workers.
const codec = encrypting(randomBytes(32))
const config = { redisUrl: process.env['REDIS_URL'], namespace: 'how-to-encryption', logLevel: 'silent' } as const
const key = randomUUID()
const handlers = { 'patients.report': handleReport }
const worker = createWorker({ catalogue, handlers, codec, config: { ...config, port: 0 } })
const api = await createApi({ catalogue, codec, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
await worker.start()
const { url } = await api.listen()
const client = createClient({ transport: http(url, key) })

const { id, result } = await client.enqueue(report, { patient: 'Ann' })
console.log(await result({ timeout: '20s' }))

// An API without the secret shows the task, but not its payloads.
const blind = await createApi({ catalogue, config: { ...config, keys: [key], port: 0, metricsPort: 0 } })
const other = createClient({ transport: http((await blind.listen()).url, key) })
const { status, input, output } = await other.task(report, id)
console.log(status, input, output)

await blind.close()
await api.close()
await worker.drain()
