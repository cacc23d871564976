// A temporary Redis leaves nothing behind, even if its owner is killed.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it, vi } from 'vitest'
import { askRedis } from './probe.mjs'
import { temporaryRedis } from './temporary.mjs'

const env = { PATH: process.env.PATH }
const dirOf = async (url) => (await askRedis(url, ['CONFIG', 'GET', 'dir']))[1]
const isGone = (url) => expect(askRedis(url, ['PING'])).rejects.toThrow('ECONNREFUSED')

it('end() stops the server and deletes its data', async () => {
  const { url, end } = await temporaryRedis('unit', { env })
  const dir = await dirOf(url)
  expect(existsSync(dir)).toBe(true)
  await end()
  await isGone(url)
  expect(existsSync(dir)).toBe(false)
})

it.each(['SIGTERM', 'SIGKILL'])('nothing is left behind when %s ends the owner', async (signal) => {
  const module = join(import.meta.dirname, 'temporary.mjs')
  const script = `import { temporaryRedis } from ${JSON.stringify(module)}
    console.log((await temporaryRedis('unit')).url)
    setInterval(() => {}, 1000)`
  const owner = spawn(process.execPath, ['--input-type=module', '-e', script], {
    env,
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  const url = await new Promise((resolve) => createInterface(owner.stdout).once('line', resolve))
  const dir = await dirOf(url)
  expect(dirname(dir)).not.toBe('/')
  owner.kill(signal)
  await vi.waitFor(() => isGone(url), { timeout: 120_000 })
  await vi.waitFor(() => expect(existsSync(dir)).toBe(false), { timeout: 120_000 })
})
