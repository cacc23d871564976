// A Prometheus that cannot start.
import { mkdtempSync, rmSync } from 'node:fs'
import { createServer } from 'node:net'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { expect, it, onTestFinished } from 'vitest'
import { startPrometheus } from './server.mjs'

it('a Prometheus whose port is taken is reported with its own words', async () => {
  const taken = createServer((socket) => socket.destroy())
  onTestFinished(() => new Promise((closed) => taken.close(closed)))
  await new Promise((listening) => taken.listen(0, '127.0.0.1', listening))
  const { port } = taken.address()
  const dir = mkdtempSync(join(tmpdir(), 'bullpen-prometheus-'))
  onTestFinished(() => rmSync(dir, { recursive: true, force: true }))
  await expect(startPrometheus({ dir, targets: [], port })).rejects.toThrow(
    new RegExp(`prometheus did not start on 127\\.0\\.0\\.1:${port}: .*\\n[\\s\\S]*address already in use`),
  )
})
