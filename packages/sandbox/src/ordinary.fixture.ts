// Handlers that do what tasks ordinarily do: they use much of Node for the first time, and change nothing that others share.
import { EventEmitter, once } from 'node:events'
import { defineHandler, defineTask } from '@bullpen/contract'
import { z } from 'zod'

async function requestOverHttp(): Promise<void> {
  const { createServer, get } = await import('node:http')
  const server = createServer((_, response) => response.end('x'))
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const { port } = server.address() as { port: number }
  await fetch(`http://127.0.0.1:${port}`).then((response) => response.text())
  await new Promise((resolve) => get({ port, host: '127.0.0.1' }, (response) => response.resume().once('end', resolve)))
  server.closeAllConnections()
  server.close()
}

async function spawnProgram(): Promise<void> {
  const { execFile } = await import('node:child_process')
  await new Promise((resolve) => execFile(process.execPath, ['--version'], resolve))
}

async function cipher(): Promise<void> {
  const { createHash, pbkdf2Sync, randomBytes, generateKeyPairSync } = await import('node:crypto')
  createHash('sha256').update(randomBytes(8)).digest('hex')
  pbkdf2Sync('a', 'b', 1, 8, 'sha1')
  generateKeyPairSync('ed25519')
  await crypto.subtle.digest('SHA-1', new Uint8Array(1))
}

async function pipe(): Promise<void> {
  const { createGzip, createGunzip } = await import('node:zlib')
  const { Readable, Writable } = await import('node:stream')
  const { pipeline } = await import('node:stream/promises')
  const end = new Writable({ write: (_, __, done) => done() })
  await pipeline(Readable.from(['a', 'b']), createGzip(), createGunzip(), end)
  await new Response(new Blob(['a']).stream().pipeThrough(new CompressionStream('gzip'))).arrayBuffer()
}

async function useFiles(): Promise<void> {
  const { createReadStream, promises } = await import('node:fs')
  for await (const _ of createReadStream(import.meta.filename)) break
  await promises.readFile(import.meta.filename)
}

async function listen(): Promise<void> {
  const emitter = new EventEmitter()
  setTimeout(() => emitter.emit('x'), 1)
  await once(emitter, 'x')
  const listener = (): void => {}
  process.on('warning', listener).off('warning', listener)
  const { AsyncLocalStorage } = await import('node:async_hooks')
  new AsyncLocalStorage().run(1, () => process.nextTick(() => {}))
  const { channel } = await import('node:diagnostics_channel')
  channel('ordinary').subscribe(() => {})
  channel('ordinary').publish({})
}

async function describe(): Promise<void> {
  const { inspect, promisify, styleText } = await import('node:util')
  inspect({ a: new Map([[1, process.versions]]) }, { colors: true })
  styleText('red', 'x')
  await promisify(setTimeout)(1)
  for (const time of [new Intl.DateTimeFormat(), new Intl.NumberFormat()]) time.format(1)
  console.group('')
  console.groupEnd()
  Error.captureStackTrace({})
}

async function resolveNames(): Promise<void> {
  const { lookup } = await import('node:dns/promises')
  await lookup('localhost')
  const { createSocket } = await import('node:dgram')
  createSocket('udp4').close()
  const { createInterface } = await import('node:readline')
  createInterface({ input: process.stdin }).close()
}

function readProcess(): void {
  for (const name of Object.getOwnPropertyNames(globalThis)) Reflect.get(globalThis, name)
  for (const name of ['title', 'report', 'finalization', 'stdin', 'stdout', 'allowedNodeEnvironmentFlags', 'config'])
    Reflect.get(process, name)
  const modules = ['assert', 'http2', 'https', 'inspector', 'perf_hooks', 'tls', 'v8', 'vm', 'worker_threads', 'os']
  for (const name of modules) Object.values(process.getBuiltinModule(`node:${name}`) ?? {})
  structuredClone(new Date())
  performance.mark('ordinary')
}

async function useWorker(): Promise<void> {
  const { Worker } = await import('node:worker_threads')
  await new Promise((resolve) => new Worker('', { eval: true }).once('exit', resolve))
}

const often = [() => {}, describe, useFiles, listen, cipher, pipe]
const seldom = [requestOverHttp, resolveNames, readProcess, spawnProgram, useWorker]

export const ordinary = defineTask({ name: 'test.ordinary', queue: 'q', input: z.int(), output: z.void() })
export const handleOrdinary = defineHandler(ordinary, import.meta.url, async ({ input }) => {
  const kinds = input % 100 < seldom.length ? seldom : often
  await kinds[input % kinds.length]?.()
})
