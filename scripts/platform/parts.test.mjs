// The small parts of `npm start`: ports, log lines, the mail stub, the printed commands.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { createLog } from '@bullpen/telemetry/internal'
import { describe, expect, it } from 'vitest'
import { freePort, nextFreePort } from '../system/ports.mjs'
import { run } from '../system/programs.mjs'
import { curlLine } from './banner.mjs'
import { terminalLine } from './log-line.mjs'
import { startMailStub } from './mail-stub.mjs'

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

describe('a log line on the terminal', () => {
  const json = (entry) => JSON.stringify({ time: 0, ...entry })
  it.each([
    ['an info line is hidden', json({ level: 'info', msg: 'started' }), 'stdout', undefined],
    ['a warning is shown', json({ level: 'warn', msg: 'slow', task: 'a.b', id: 't1' }), 'stdout', 'warn  a.b t1  slow'],
    [
      'an error is shown with its cause',
      json({ level: 'error', msg: 'failed', err: { message: 'gone' } }),
      'stdout',
      'error  failed: gone',
    ],
    ['plain text on stdout is hidden', 'hello', 'stdout', undefined],
    ['plain text on stderr is shown', 'Error: x', 'stderr', 'Error: x'],
    ['an empty line is hidden', ' ', 'stderr', undefined],
    ['JSON that is not a log line is hidden', 'null', 'stderr', undefined],
  ])('%s', (_, line, stream, shown) => expect(terminalLine(line, stream)).toBe(shown))

  it('is derived from the format that the programs write', () => {
    const lines = []
    const log = createLog({ level: 'info', name: 'x', destination: { write: (line) => lines.push(line) } })
    log.info({}, 'fine')
    log.warn({ task: 'a.b', id: 't1', err: new Error('busy') }, 'retrying')
    expect(lines.map((line) => terminalLine(line, 'stdout'))).toEqual([undefined, 'warn  a.b t1  retrying: busy'])
  })

  it('also shows what handlers log at info, in dev', () => {
    const lines = []
    const log = createLog({ level: 'info', name: 'x', destination: { write: (line) => lines.push(line) } })
    const attempt = { task: 'a.b', id: 't1', fencingToken: 1, attempt: 1 }
    log.child(attempt).info({}, 'sending')
    log.info({ ...attempt, queue: 'a' }, 'attempt started')
    log.info({}, 'worker ready')
    const shown = lines.map((line) => terminalLine(line, 'stdout', { handlers: true }))
    expect(shown).toEqual(['info  a.b t1  sending', undefined, undefined])
  })
})

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

/** The part of curl that the printed commands use, so that the test does not need curl. */
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

describe('a printed command', () => {
  it('enqueues a task and waits for its result when it is pasted into a shell', async () => {
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
