// Provides one Redis for the whole test run. It is found or started before the first test, and stopped and deleted after the
// last. Installs the programs that the user has agreed to, because several test files would otherwise do so at the same time.
import { resolvePrometheus } from '../prometheus/programs.mjs'
import { CONTAINER_COMMAND, engineAnswers, imageIsHere, pullImage } from '../redis/docker.mjs'
import { startRedisServer } from '../redis/server.mjs'
import { temporaryRedis } from '../redis/temporary.mjs'
import { installPrograms } from './required-programs.mjs'

/** Starts Redis with testcontainers, whose containers leave no files behind. */
async function startWithTestcontainers({ image }) {
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= 'true' // the reaper would be another image to pull; teardown stops the container
  const { GenericContainer } = await import('testcontainers')
  const container = await new GenericContainer(image).withCommand(CONTAINER_COMMAND).withExposedPorts(6379).start()
  return {
    url: `redis://${container.getHost()}:${container.getMappedPort(6379)}`,
    stop: async () => void (await container.stop()),
  }
}

/**
 * Starts Redis without an append-only file, because no test restarts this server. Redis would spend processor time on the file, and if
 * the disk is busy, it would wait, and a command of a test would fail.
 */
const startServer = (options) => startRedisServer({ ...options, args: ['--appendonly', 'no'] })

/** @param {import('vitest/node').TestProject} project */
export default async function setup(project) {
  const docker = { answers: engineAnswers, has: imageIsHere, pull: pullImage, start: startWithTestcontainers }
  // Only some files need these programs: their tests fail without them, and say what to install.
  await resolvePrometheus().catch(() => {})
  await installPrograms()
  const redis = await temporaryRedis('test-redis', { docker, startServer })
  project.provide('redisUrl', redis.url)
  return redis.end
}
