// A fleet of example workers with an API, all within this process, on a real Redis.
import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { catalogue } from '@bullpen/tasks'
import { openFleet } from '../../worker/src/md5-all/fleet.fixture.ts'

const silent = { debug() {}, info() {}, warn() {}, error() {} }

/** Opens a fleet without workers, and an API for it. */
export async function openFleetApi() {
  const fleet = openFleet()
  const { redisUrl, namespace } = fleet
  const key = randomUUID()
  const config = { redisUrl, namespace, keys: [key], port: 0, metricsPort: 0 }
  const api = await createApi({ catalogue, log: silent, config })
  const { url } = await api.listen()
  return {
    ...fleet,
    url,
    key,
    async close() {
      await fleet.close()
      await api.close()
    },
  }
}
