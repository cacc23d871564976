// Runs one worker of the benchmark `http` in a process of its own.
import { defineHandler } from '@bullpen/contract'
import { createWorker } from '@bullpen/worker'
import { ownCpu, partOptions, reportReady } from '../measuring/part.ts'
import { catalogue, type PlatformOptions, SLOTS, square } from './workload.ts'

const handle = defineHandler(square, import.meta.url, ({ input: { n } }) => ({ square: n * n }))
const worker = createWorker({
  catalogue,
  handlers: { 'bench.square': handle },
  config: { ...partOptions<PlatformOptions>(), pools: { [square.queue]: SLOTS }, port: 0 },
})
await worker.start()
reportReady(true, { cpu: ownCpu })
