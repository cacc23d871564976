// Tests that the receipts drill's endpoint accepts each key once, fails on request, and records interrupted deliveries.
import { eventually } from '@bullpen/testkit'
import { expect, it, onTestFinished } from 'vitest'
import { openReceiptEndpoint } from './receipt-endpoint.ts'

async function endpoint(answerMs: number, failures = 0) {
  const opened = await openReceiptEndpoint({ answerMs, failures: () => failures })
  onTestFinished(() => opened.close())
  const deliver = async (key: string, signal?: AbortSignal): Promise<number> => {
    const headers = { 'content-type': 'application/json', 'idempotency-key': key }
    const body = JSON.stringify({ orderId: 'a' })
    const { status } = await fetch(opened.url('w7'), { method: 'POST', headers, body, ...(signal && { signal }) })
    return status
  }
  return { ...opened, deliver }
}

it('the endpoint accepts a key once, and then reports a duplicate', async () => {
  const { deliver, deliveries } = await endpoint(0)
  expect([await deliver('k1'), await deliver('k1'), await deliver('k2')]).toEqual([202, 202, 202])
  expect(deliveries).toMatchObject([
    { orderId: 'a', key: 'k1', by: 'w7', as: 'accepted', answeredAt: expect.any(Number), cutAt: undefined },
    { as: 'duplicate' },
    { as: 'accepted', key: 'k2' },
  ])
})

it('the endpoint fails an order as often as requested', async () => {
  const { deliver } = await endpoint(0, 2)
  expect([await deliver('k'), await deliver('k'), await deliver('k')]).toEqual([503, 503, 202])
})

it('the endpoint accepts a receipt before it responds, and reports open deliveries', async () => {
  const { deliver, deliveries, holds } = await endpoint(60_000)
  const caller = new AbortController()
  const answer = deliver('k', caller.signal)
  await holds('w7', 1)
  expect(deliveries).toMatchObject([{ as: 'accepted', cutAt: undefined }])
  caller.abort()
  await expect(answer).rejects.toThrow()
  await eventually(() => deliveries[0]?.cutAt !== undefined)
  expect(deliveries).toMatchObject([{ answeredAt: undefined }])
})
