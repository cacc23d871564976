// A worker process for the hungry tasks: two at once, so that the tests beside it get something of the machine.

import { createWorker, runUntilSignalled } from './index.ts'
import * as handlers from './memory-hog.fixture.ts'

const [redisUrl, namespace] = process.argv.slice(2)
const worker = createWorker({
  catalogue: handlers.hungryTasks,
  handlers: {
    'hungry.objects': handlers.holdsObjects,
    'hungry.array': handlers.holdsArray,
    'hungry.map': handlers.holdsMap,
    'hungry.json': handlers.holdsParsed,
    'hungry.buffers': handlers.holdsBuffers,
    'hungry.stack': handlers.overflows,
    'modest.inline': handlers.doublesHere,
    'modest.process': handlers.doublesThere,
  },
  config: { redisUrl, namespace, port: 0, drainTimeout: '5s', grace: '2s', pools: { hungry: 2 } },
})
process.exit(await runUntilSignalled(worker))
