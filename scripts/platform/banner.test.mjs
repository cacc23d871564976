// A printed command, pasted into a shell.
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { describe, expect, it } from 'vitest'
import { run } from '../system/programs.mjs'
import { curlLine } from './banner.mjs'

const listen = (server, port = 0) =>
  new Promise((resolve) => server.listen(port, '127.0.0.1', () => resolve(server.address().port)))

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
  it.each([
    ['enqueues a task', { task: 'a.b' }, 'tasks'],
    ['starts a pipeline', { pipeline: 'a-b' }, 'runs'],
  ])('%s and waits for its result when it is pasted into a shell', async (_, what, path) => {
    const seen = []
    const server = createServer((request, response) => {
      const { method, url, headers } = request
      let body = ''
      request.on('data', (chunk) => {
        body += chunk
      })
      request.on('end', () => {
        seen.push([method, url, headers.authorization, body])
        response.end(
          method === 'POST'
            ? '{"id":"t-1","status":"waiting","source":{"id":"t-2"},"links":{}}'
            : '{"status":"completed"}',
        )
      })
    })
    const apiUrl = `http://127.0.0.1:${await listen(server)}`
    const line = curlLine({ apiUrl, key: 'k', ...what, input: { path: "it's\n" }, wait: 7 })
    expect(line).not.toContain('\n')
    const bin = mkdtempSync(join(tmpdir(), 'bullpen-curl-'))
    writeFileSync(join(bin, 'curl'), CURL)
    chmodSync(join(bin, 'curl'), 0o755)
    const { stdout } = await run('sh', ['-c', line], { env: { PATH: `${bin}:${process.env.PATH}` } })
    server.close()
    rmSync(bin, { recursive: true })
    expect(stdout).toBe('{"status":"completed"}')
    expect(seen).toEqual([
      ['POST', `/v1/${path}`, 'Bearer k', JSON.stringify({ ...what, input: { path: "it's\n" } })],
      ['GET', `/v1/${path}/t-1?wait=7`, 'Bearer k', ''],
    ])
  })
})
