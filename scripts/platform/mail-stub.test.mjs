// The mail stub over HTTP.
import { describe, expect, it } from 'vitest'
import { startMailStub } from './mail-stub.mjs'

describe('the mail stub', () => {
  it('accepts receipts, and fails for addresses that begin with "fail"', async () => {
    const { url, close } = await startMailStub({ port: 0 })
    const post = (body) => fetch(url, { method: 'POST', body }).then(({ status }) => status)
    expect(await post('{"to":"ann@example.com"}')).toBe(202)
    expect(await post('{"to":"fail@example.com"}')).toBe(503)
    expect(await post('{')).toBe(400)
    expect((await fetch(url)).status).toBe(404)
    await close()
  })
})
