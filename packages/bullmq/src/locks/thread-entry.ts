// The entry point of the lock-renewal thread. The thread has its own event loop and its own connection to Redis.
import { parentPort, workerData } from 'node:worker_threads'
import type { RedisAddress } from '@bullpen/contract/internal'
import { renewalConnection } from '../redis/renewal-connection.ts'
import type { LockMessage } from './lock-messages.ts'
import { type Renewal, startRenewal } from './renewal.ts'

const redis = renewalConnection((workerData as { readonly address: RedisAddress }).address)
redis.once('ready', () => parentPort?.postMessage('ready'))
const renewals = new Map<number, Renewal>()

parentPort?.on('message', (message: LockMessage) => {
  switch (message.kind) {
    case 'renew':
      renewals.set(message.group.number, startRenewal(redis, message.group))
      break
    case 'add_table':
      renewals.get(message.number)?.addTable(message.table)
      break
    case 'release':
      renewals.get(message.number)?.end()
      renewals.delete(message.number)
      break
    case 'end':
      for (const renewal of renewals.values()) renewal.end()
      redis.disconnect()
      parentPort?.close()
  }
})
