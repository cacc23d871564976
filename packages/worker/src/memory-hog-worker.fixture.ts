// A worker process that runs two memory hogs at once, which leaves room on the machine for other tests.
import { createWorker, runUntilSignalled } from './index.ts'
import * as handlers from './memory-hog.fixture.ts'

const [redisUrl, namespace] = process.argv.slice(2)
const worker = createWorker({
  catalogue: handlers.memoryHogTasks,
  handlers: {
    'hog.objects': handlers.holdsObjects,
    'hog.array': handlers.holdsArray,
    'hog.map': handlers.holdsMap,
    'hog.json': handlers.holdsParsed,
    'hog.buffers': handlers.holdsBuffers,
    'hog.stack': handlers.overflows,
    'modest.inline': handlers.doublesHere,
    'modest.process': handlers.doublesThere,
  },
  config: { redisUrl, namespace, port: 0, drainTimeout: '5s', grace: '2s', pools: { hogs: 2 } },
})
process.exit(await runUntilSignalled(worker))
