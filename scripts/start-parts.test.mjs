// The small parts of `npm start`: ports, log lines, curl lines, the receipts endpoint.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '@bullpen/telemetry/internal'
import { describe, expect, it } from 'vitest'
import { worthShowing } from './log-line.mjs'
import { freePort, nextFreePort } from './ports.mjs'
import { run } from './programs.mjs'
import { startReceipts } from './receipts.mjs'
import { curlLine } from './welcome.mjs'

const listen = (server, port = 0) =>
  new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server.address().port)))

describe('the next free port', () => {
  it('is the one that was wanted, unless somebody listens there or has been promised it', async () => {
    const server = createServer()
    const taken = await listen(server)
    expect(await nextFreePort(taken)).toBeGreaterThan(taken)
    server.close()
    const free = await freePort()
    expect(await nextFreePort(free)).toBe(free)
    expect(await nextFreePort(free, { taken: [free] })).toBeGreaterThan(free)
  })
})

describe('what the terminal shows of a log', () => {
  const json = (entry) => JSON.stringify({ time: 0, ...entry })
  it.each([
    ['an information', json({ level: 'info', msg: 'started' }), 'stdout', undefined],
    ['a warning', json({ level: 'warn', msg: 'slow', task: 'a.b', id: 't1' }), 'stdout', 'warn  a.b t1  slow'],
    ['an error', json({ level: 'error', msg: 'failed', err: { message: 'gone' } }), 'stdout', 'error  failed: gone'],
    ['a line of text', 'hello', 'stdout', undefined],
    ['a stack trace', 'Error: x', 'stderr', 'Error: x'],
    ['an empty line', ' ', 'stderr', undefined],
    ['JSON of another kind', 'null', 'stderr', undefined],
  ])('%s', (_, line, stream, shown) => expect(worthShowing(line, stream)).toBe(shown))

  it('is what the programs really write', () => {
    const lines = []
    const log = createLog({ level: 'info', name: 'x', destination: { write: (line) => lines.push(line) } })
    log.info({}, 'fine')
    log.warn({ task: 'a.b', id: 't1', err: new Error('busy') }, 'retrying')
    expect(lines.map((line) => worthShowing(line, 'stdout'))).toEqual([undefined, 'warn  a.b t1  retrying: busy'])
  })
})

describe('the receipts endpoint', () => {
  it('accepts receipts, and is out of order for addresses that begin with fail', async () => {
    const { url, stop } = await startReceipts({ port: 0 })
    const post = (body) => fetch(url, { method: 'POST', body }).then(({ status }) => status)
    expect(await post('{"to":"ann@example.com"}')).toBe(202)
    expect(await post('{"to":"fail@example.com"}')).toBe(503)
    expect(await post('{')).toBe(400)
    expect((await fetch(url)).status).toBe(404)
    await stop()
  })
})

/** As much of curl as the lines use, so that the test needs nothing installed. */
const CURL = `#!${process.execPath}
const { parseArgs } = require('node:util')
const text = { type: 'string', multiple: true }
const options = { s: { type: 'boolean', short: 's' }, S: { type: 'boolean', short: 'S' }, H: { ...text, short: 'H' }, d: { type: 'string', short: 'd' } }
const { values, positionals } = parseArgs({ options, allowPositionals: true })
const headers = values.H.map((header) => header.split(': '))
fetch(positionals[0], { method: values.d ? 'POST' : 'GET', headers, body: values.d })
  .then((response) => response.text())
  .then((body) => process.stdout.write(body))
`

describe('a printed curl line', () => {
  it('enqueues, then asks for the end of that very task, when it is pasted into a shell', async () => {
    const seen = []
    const server = createServer((request, response) => {
      const { method, url, headers } = request
      let body = ''
      request.on('data', (chunk) => {
        body += chunk
      })
      request.on('end', () => {
        seen.push([method, url, headers.authorization, body])
        response.end(method === 'POST' ? '{"id":"t-1","status":"waiting","links":{}}' : '{"status":"completed"}')
      })
    })
    const apiUrl = `http://127.0.0.1:${await listen(server)}`
    const line = curlLine({ apiUrl, key: 'k', task: 'a.b', input: { path: "it's\n" }, wait: 7 })
    expect(line).not.toContain('\n')
    const bin = mkdtempSync(join(tmpdir(), 'bullpen-curl-'))
    writeFileSync(join(bin, 'curl'), CURL)
    chmodSync(join(bin, 'curl'), 0o755)
    const { stdout } = await run('sh', ['-c', line], { env: { PATH: `${bin}:${process.env.PATH}` } })
    server.close()
    rmSync(bin, { recursive: true })
    expect(stdout).toBe('{"status":"completed"}')
    expect(seen).toEqual([
      ['POST', '/v1/tasks', 'Bearer k', '{"task":"a.b","input":{"path":"it\'s\\n"}}'],
      ['GET', '/v1/tasks/t-1?wait=7', 'Bearer k', ''],
    ])
  })
})
