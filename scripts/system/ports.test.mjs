// Finding free ports.
import { createServer } from 'node:net'
import { describe, expect, it } from 'vitest'
import { freePort, nextFreePort } from './ports.mjs'

const listen = (server, port = 0) =>
  new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server.address().port)))

describe('the next free port', () => {
  it('is the wanted one unless it is in use or reserved', async () => {
    const server = createServer()
    const taken = await listen(server)
    expect(await nextFreePort(taken)).toBeGreaterThan(taken)
    server.close()
    const free = await freePort()
    expect(await nextFreePort(free)).toBe(free)
    expect(await nextFreePort(free, { taken: [free] })).toBeGreaterThan(free)
  })
})
