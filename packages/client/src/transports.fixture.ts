// Opens a transport of each kind on the test's Redis.
import { randomUUID } from 'node:crypto'
import { createApi } from '@bullpen/api'
import { redis } from '@bullpen/bullmq'
import type { Catalogue } from '@bullpen/contract'
import { inject, onTestFinished } from 'vitest'
import { http, type TaskTransport } from './index.ts'

type OpenTransport = (catalogue: Catalogue, namespace: string) => Promise<TaskTransport>

const silent = { debug() {}, info() {}, warn() {}, error() {} }

const overHttp: OpenTransport = async (catalogue, namespace) => {
  const key = randomUUID()
  const config = { redisUrl: inject('redisUrl'), namespace, keys: [key], port: 0, metricsPort: 0 }
  const api = await createApi({ catalogue, log: silent, config })
  onTestFinished(() => api.close())
  return http((await api.listen()).url, key)
}

const overRedis: OpenTransport = async (catalogue, namespace) => redis(inject('redisUrl'), { catalogue, namespace })

export const TRANSPORTS = [
  ['HTTP', overHttp],
  ['Redis', overRedis],
] as const
