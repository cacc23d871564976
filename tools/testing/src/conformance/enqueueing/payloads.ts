// Tests that every broker encodes payloads with a codec before they are stored.
import { TaskError } from '@bullpen/contract'
import type { PayloadCodec } from '@bullpen/engine'
import { expect, it } from 'vitest'
import type { OpenBackend } from '../backend.ts'
import { long, openSetup, plain, QUEUE, SIZE_LIMIT, short } from '../setup.ts'

/** Creates a codec that reverses the text and makes it ten characters longer. The codec records what it has encoded. */
export function reversing(): PayloadCodec & { readonly encoded: unknown[] } {
  const encoded: unknown[] = []
  const reverse = (text: string): string => [...text].toReversed().join('')
  return {
    encoded,
    encode(json) {
      encoded.push(JSON.parse(json))
      return `reversed: ${reverse(json)}`
    },
    decode(stored) {
      if (!stored.startsWith('reversed: ')) throw new Error(`the codec did not write ${JSON.stringify(stored)}`)
      return reverse(stored.slice('reversed: '.length))
    },
  }
}

export function payloads(open: OpenBackend): void {
  it('inputs, outputs and results of steps are encoded once each, and readers see what was written', async () => {
    const codec = reversing()
    const seen: unknown[] = []
    const { enqueue, start, settled, find, broker } = await openSetup(open, {
      codec,
      handle: async ({ input, once, attempt }) => {
        seen.push(input, await once('pay', () => ({ paid: 7 })))
        if (attempt === 1) throw new TaskError('busy', 'not now')
        return { n: 2 }
      },
    })
    const id = await enqueue(long, { n: 1 })
    expect(await find(id)).toMatchObject({ input: { n: 1 }, output: undefined })
    expect((await broker.list({ queue: QUEUE, status: 'waiting', limit: 1, cursor: undefined })).tasks).toMatchObject([
      { id, input: { n: 1 } },
    ])
    await start()
    expect(await settled(id)).toMatchObject({ status: 'completed', input: { n: 1 }, output: { n: 2 }, steps: ['pay'] })
    expect(seen).toEqual([{ n: 1 }, { paid: 7 }, { n: 1 }, { paid: 7 }])
    expect(codec.encoded).toEqual([{ n: 1 }, { paid: 7 }, { n: 2 }])
  })

  it('any JSON value survives the codec, and so does a missing one', async () => {
    for (const value of ['text', '', 'reversed: x', '~', 0, false, null, [], { encoded: true }, undefined]) {
      const { enqueue, start, settled } = await openSetup(open, { codec: reversing(), handle: () => value as never })
      const id = await enqueue(plain, value)
      await start()
      expect(await settled(id)).toMatchObject({ status: 'completed', input: value, output: value })
    }
  })

  it('the size limit counts the encoded input', async () => {
    const codec: PayloadCodec = {
      encode: (json) => json.repeat(2),
      decode: (stored) => stored.slice(stored.length / 2),
    }
    const { enqueue, broker } = await openSetup(open, { codec })
    const large = 'x'.repeat(SIZE_LIMIT * 0.6)
    await expect(enqueue(plain, large)).rejects.toMatchObject({ code: 'payload_too_large' })
    expect(await broker.counts(QUEUE)).toMatchObject({ waiting: 0 })
    const packing: PayloadCodec = { encode: () => 'packed', decode: () => JSON.stringify(large.repeat(2)) }
    const packed = await openSetup(open, { codec: packing })
    expect(await packed.find(await packed.enqueue(plain, large.repeat(2)))).toMatchObject({ input: large.repeat(2) })
  })

  it('an attempt whose input cannot be decoded fails without starting the handler, and is retried', async () => {
    let broken = true
    const codec = reversing()
    const { enqueue, start, settled, events } = await openSetup(open, {
      codec: {
        encode: codec.encode,
        decode(stored) {
          if (broken && events.some(({ event }) => event === 'attempt.ended')) broken = false
          if (broken) throw new Error('no such key')
          return codec.decode(stored)
        },
      },
    })
    await start()
    const record = await settled(await enqueue(short, { n: 4 }))
    expect(record).toMatchObject({
      status: 'completed',
      output: { n: 4 },
      attempts: [
        { state: 'DONE_ERROR', code: 'unreadable_payload', message: expect.stringContaining('no such key') },
        { state: 'DONE_SUCCESS' },
      ],
    })
  })
}
