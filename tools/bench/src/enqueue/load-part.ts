// Runs the HTTP load of the benchmark `enqueue` in a process of its own.

import { partOptions, reportReady } from '../measuring/part.ts'
import { openHttpLoad } from './http-load.ts'
import { REQUESTS, type RequestName } from './workload.ts'

export interface LoadOptions {
  readonly port: number
  readonly connections: number
  readonly requests: RequestName
}

const { port, connections, requests } = partOptions<LoadOptions>()
const load = openHttpLoad({
  port,
  connections,
  request: REQUESTS[requests],
  onFailed(error) {
    throw error
  },
})
reportReady(true, {
  begin() {
    load.begin()
    return true
  },
  end: load.end,
})
