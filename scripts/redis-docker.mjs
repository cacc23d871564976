// Runs Redis in a container through the docker command line, for a machine that has an engine but no redis-server.
import { createHash } from 'node:crypto'
import { mkdirSync, realpathSync } from 'node:fs'
import { run } from './programs.mjs'
import { pingRedis } from './redis-probe.mjs'
import { settingsAsArguments } from './redis-server.mjs'
import { UserError } from './user-error.mjs'

export const IMAGE = 'redis:8'

/** Protected mode refuses whoever comes from outside the container; the port is published on loopback alone. */
export const CONTAINER_COMMAND = ['redis-server', ...settingsAsArguments(), '--protected-mode', 'no']

/** Does an engine answer? A client without an engine says no within 5 s. */
export const engineAnswers = async () =>
  (await run('docker', ['version', '--format', '{{.Server.Version}}'], { timeout: 5000 })).code === 0

/** Is the image here, or can it be had? */
export const imageIsHere = async (image) =>
  (await run('docker', ['image', 'inspect', image], { timeout: 10_000 })).code === 0
export const pullImage = async (image) =>
  (await run('docker', ['pull', '--quiet', image], { timeout: 300_000 })).code === 0

/**
 * Starts a container on `dir`, published on a free loopback port. One left over on the same directory is ended first.
 * @param {{ dir: string, image: string }} options
 */
export async function startContainer({ dir, image }) {
  mkdirSync(dir, { recursive: true })
  const home = realpathSync(dir)
  const name = `bullpen-redis-${createHash('sha256').update(home).digest('hex').slice(0, 12)}`
  const stop = async () => {
    await run('docker', ['stop', '--time', '20', name])
    await run('docker', ['rm', '--force', name])
  }
  await stop()
  const owner = process.getuid === undefined ? [] : ['--user', `${process.getuid()}:${process.getgid()}`]
  const flags = ['--detach', '--name', name, '--publish', '127.0.0.1::6379', '--volume', `${home}:/data`, ...owner]
  const started = await run('docker', ['run', ...flags, image, ...CONTAINER_COMMAND])
  if (started.code !== 0) throw new UserError(`docker could not start ${image}: ${started.stderr.trim()}`)
  const { stdout } = await run('docker', ['port', name, '6379/tcp'])
  const url = `redis://127.0.0.1:${Number(stdout.trim().split('\n')[0]?.split(':').at(-1))}`
  const answer = await pingRedis(url, { within: 20_000 })
  if (!answer.ok) {
    const { stdout: out, stderr } = await run('docker', ['logs', '--tail', '12', name])
    await stop()
    throw new UserError(`${image} in a container did not answer at ${url}: ${answer.reason}\n${out}${stderr}`.trimEnd())
  }
  return { url, stop }
}
