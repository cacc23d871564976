// Runs the API of the benchmark `http` in a process of its own, and reports its address.
import { createApi } from '@bullpen/api'
import { ownCpu, partOptions, reportReady } from '../measuring/part.ts'
import { API_KEY, catalogue, type PlatformOptions } from './workload.ts'

const config = { ...partOptions<PlatformOptions>(), keys: [API_KEY], port: 0, metricsPort: 0 }
const api = await createApi({ catalogue, config })
const { url } = await api.listen()
reportReady(url, { cpu: ownCpu })
