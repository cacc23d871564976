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
let refused = 0
const load = openHttpLoad({
  port,
  connections,
  request: REQUESTS[requests],
  // A server that is busy with other work may refuse some requests, which the figures leave out.
  onRefused({ message }) {
    if (refused++ === 0) console.error(message)
  },
  onFailed(error) {
    throw error
  },
})
reportReady(true, {
  begin() {
    load.begin()
    return true
  },
  end() {
    if (refused > 0) console.error(`the server did not accept ${refused} requests`)
    return load.end()
  },
})
