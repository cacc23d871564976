// What the renewing thread runs: its own event loop, and its own connection to Redis.
import { parentPort, workerData } from 'node:worker_threads'
import type { Order } from './lock-messages.ts'
import { type Renewal, startRenewal } from './renewal.ts'
import { renewalConnection } from './renewal-connection.ts'

const redis = renewalConnection((workerData as { readonly redisUrl: string }).redisUrl)
redis.once('ready', () => parentPort?.postMessage('ready'))
const renewals = new Map<number, Renewal>()

parentPort?.on('message', (order: Order) => {
  switch (order.kind) {
    case 'tend':
      renewals.set(order.charge.number, startRenewal(redis, order.charge))
      break
    case 'table':
      renewals.get(order.number)?.add(order.table)
      break
    case 'leave':
      renewals.get(order.number)?.end()
      renewals.delete(order.number)
      break
    case 'end':
      for (const renewal of renewals.values()) renewal.end()
      redis.disconnect()
      parentPort?.close()
  }
})
