// A temporary cluster serves all slots, and leaves nothing behind, even if its owner is killed.
import { spawn } from 'node:child_process'
import { existsSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { createInterface } from 'node:readline'
import { expect, it, vi } from 'vitest'
import { temporaryCluster } from './cluster.mjs'
import { askRedis } from './probe.mjs'

const isGone = (url) => expect(askRedis(url, ['PING'])).rejects.toThrow('ECONNREFUSED')
const dirOf = async (url) => dirname((await askRedis(url, ['CONFIG', 'GET', 'dir']))[1])

it('three masters share the slots, a key is refused by the other two, and end() deletes their data', async () => {
  const { url, nodes, end } = await temporaryCluster('unit')
  expect(url).toBe(`redis+cluster://${nodes.map(({ port }) => `127.0.0.1:${port}`).join(',')}`)
  const dir = await dirOf(nodes[0].url)
  const answers = await Promise.all(nodes.map((node) => askRedis(node.url, ['SET', 'key', 'value'])))
  expect(answers.toSorted()).toEqual([
    '+OK',
    expect.stringMatching(/^-MOVED \d+ 127/),
    expect.stringMatching(/^-MOVED \d+ 127/),
  ])
  await end()
  for (const node of nodes) await isGone(node.url)
  expect(existsSync(dir)).toBe(false)
})

it('a replica takes over the slots of a killed master', async () => {
  const { nodes, end } = await temporaryCluster('unit', { replicas: 1, nodeTimeout: 500 })
  const replica = nodes[3]
  expect(await replica.ask('INFO', 'replication')).toContain('role:slave')
  await nodes[0].crash()
  await vi.waitFor(async () => expect(await replica.ask('INFO', 'replication')).toContain('role:master'), {
    timeout: 120_000,
  })
  await nodes[0].start()
  await vi.waitFor(async () => expect(await nodes[0].ask('INFO', 'replication')).toContain('role:slave'), {
    timeout: 120_000,
  })
  await end()
})

it('nothing is left behind when SIGKILL ends the owner', async () => {
  const module = join(import.meta.dirname, 'cluster.mjs')
  const script = `import { temporaryCluster } from ${JSON.stringify(module)}
    console.log(JSON.stringify((await temporaryCluster('unit')).nodes.map(({ url }) => url)))
    setInterval(() => {}, 1000)`
  const owner = spawn(process.execPath, ['--input-type=module', '-e', script], { stdio: ['ignore', 'pipe', 'inherit'] })
  const urls = JSON.parse(await new Promise((resolve) => createInterface(owner.stdout).once('line', resolve)))
  const dir = await dirOf(urls[0])
  owner.kill('SIGKILL')
  for (const url of urls) await vi.waitFor(() => isGone(url), { timeout: 120_000 })
  await vi.waitFor(() => expect(existsSync(dir)).toBe(false), { timeout: 120_000 })
})
