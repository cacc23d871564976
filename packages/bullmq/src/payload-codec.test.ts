// Tests that no payload is stored in plain text if the broker and the workers have a codec, and what a process without it sees.
import { createCipheriv, createDecipheriv, randomBytes } from 'node:crypto'
import type { Log } from '@bullpen/contract'
import { createTaskId } from '@bullpen/contract/internal'
import type { PayloadCodec } from '@bullpen/engine'
import { newTask } from '@bullpen/engine/internal'
import { eventually } from '@bullpen/testkit'
import { Redis } from 'ioredis'
import { describe, expect, inject, it, onTestFinished } from 'vitest'
import { openPatientBroker } from './broker/patient-broker.fixture.ts'
import { ownWorker, slow } from './plain-processor.fixture.ts'
import { silent } from './setup.fixture.ts'

/** AES-256-GCM with a random nonce, which precedes the ciphertext and its tag. */
function encrypting(): PayloadCodec {
  const key = randomBytes(32)
  return {
    encode(json) {
      const nonce = randomBytes(12)
      const cipher = createCipheriv('aes-256-gcm', key, nonce)
      const text = [cipher.update(json, 'utf8'), cipher.final()]
      return Buffer.concat([nonce, ...text, cipher.getAuthTag()]).toString('base64')
    },
    decode(stored) {
      const bytes = Buffer.from(stored, 'base64')
      const decipher = createDecipheriv('aes-256-gcm', key, bytes.subarray(0, 12))
      decipher.setAuthTag(bytes.subarray(-16))
      return decipher.update(bytes.subarray(12, -16), undefined, 'utf8') + decipher.final('utf8')
    },
  }
}

const INPUT = 918_273_645
const STEP = 564_738_291
const OUTPUT = 192_837_465

/** Runs one task with a broker and a processor that have the codec. */
async function runEncrypted(codec: PayloadCodec) {
  const redisUrl = inject('redisUrl')
  const { namespace, openQueue, startWorker } = ownWorker(
    async ({ input, once }) => {
      expect(input).toEqual({ n: INPUT })
      expect(await once('pay', () => ({ paid: STEP }))).toEqual({ paid: STEP })
      return { n: OUTPUT }
    },
    { codec },
  )
  openQueue()
  const open = (given: { readonly codec?: PayloadCodec; readonly log?: Log }) => {
    const broker = openPatientBroker({ redisUrl, namespace, queues: ['own'], sizeLimit: 10_000, log: silent, ...given })
    onTestFinished(() => broker.close())
    return broker
  }
  const broker = open({ codec })
  const id = createTaskId('own', Date.now(), randomBytes(10))
  const task = newTask(slow, { n: INPUT }, { tags: ['visible'] }, { id, enqueuedAt: Date.now(), correlationId: 'c-1' })
  await eventually(() => broker.enqueue(task).then(() => true))
  const { settled } = startWorker()
  await settled()
  return { redisUrl, namespace, broker, open, id }
}

describe('a codec that encrypts', () => {
  it('leaves no input, output or result of a step in Redis in plain text, and returns them to who has it', async () => {
    const { redisUrl, namespace, broker, id } = await runEncrypted(encrypting())
    expect(await broker.find(id)).toMatchObject({
      status: 'completed',
      input: { n: INPUT },
      output: { n: OUTPUT },
      steps: ['pay'],
      tags: ['visible'],
    })
    const redis = new Redis(redisUrl)
    onTestFinished(() => redis.disconnect())
    const stored: string[] = []
    for (const key of await redis.keys(`{${namespace}*`)) {
      const type = await redis.type(key)
      if (type === 'hash') stored.push(JSON.stringify(await redis.hgetall(key)))
      else if (type === 'stream') stored.push(JSON.stringify(await redis.xrange(key, '-', '+')))
    }
    const text = stored.join('\n')
    expect(text).toContain(id)
    expect(text).toContain('visible')
    for (const secret of [INPUT, STEP, OUTPUT]) expect(text).not.toContain(String(secret))
  })

  it.each([
    ['without a codec', undefined],
    ['with another key', encrypting()],
  ])('hides the payloads from a broker %s, which returns the rest of the task and logs a warning', async (_, codec) => {
    const { open, id } = await runEncrypted(encrypting())
    const warnings: string[] = []
    // The broker also checks the settings of the server, and logs what it finds.
    const warn = (fields: object, message: string) => void ('check' in fields || warnings.push(message))
    const log = { ...silent, warn }
    const other = open({ log, ...(codec && { codec }) })
    const record = await eventually(() => other.find(id).catch(() => undefined))
    expect(record).toMatchObject({ status: 'completed', input: undefined, output: undefined, tags: ['visible'] })
    expect(warnings).toEqual([expect.stringMatching(/^a stored payload cannot be decoded/)])
  })

  it('can be introduced while tasks are stored that it has not encoded', async () => {
    const { broker, open } = await runEncrypted(encrypting())
    const plain = open({})
    const before = newTask(
      slow,
      { n: 5 },
      { delay: '1h' },
      { id: createTaskId('own', Date.now(), randomBytes(10)), enqueuedAt: Date.now(), correlationId: undefined },
    )
    await eventually(() => plain.enqueue(before).then(() => true))
    expect(await broker.find(before.id)).toMatchObject({ status: 'scheduled', input: { n: 5 } })
  })
})
