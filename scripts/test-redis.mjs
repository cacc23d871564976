// Gives a whole test run one Redis: found or started before the first test, ended and forgotten after the last.
import { CONTAINER_COMMAND, engineAnswers, imageIsHere, pullImage } from './redis-docker.mjs'
import { throwawayRedis } from './throwaway-redis.mjs'

/** The Docker step of the tests: testcontainers, whose containers take no directory and leave nothing behind. */
async function startWithTestcontainers({ image }) {
  process.env.TESTCONTAINERS_RYUK_DISABLED ??= 'true' // the reaper is an image more to pull; teardown ends the container
  const { GenericContainer } = await import('testcontainers')
  const container = await new GenericContainer(image).withCommand(CONTAINER_COMMAND).withExposedPorts(6379).start()
  return {
    url: `redis://${container.getHost()}:${container.getMappedPort(6379)}`,
    stop: async () => void (await container.stop()),
  }
}

/** @param {import('vitest/node').TestProject} project */
export default async function setup(project) {
  const docker = { answers: engineAnswers, has: imageIsHere, pull: pullImage, start: startWithTestcontainers }
  const redis = await throwawayRedis('test-redis', { docker })
  project.provide('redisUrl', redis.url)
  return redis.end
}
