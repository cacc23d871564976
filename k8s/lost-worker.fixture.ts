// A worker program whose only task never ends, so that the worker can be killed while it runs the task.
import { defineCatalogue, defineHandler, defineTask } from '@bullpen/contract'
import { createWorker, runUntilSignalled, workerConfig } from '@bullpen/worker'
import { z } from 'zod'

export const endless = defineTask({ name: 'lost.any', queue: 'lost', input: z.object({ n: z.int() }) })

if (process.argv[1] === import.meta.filename) {
  const handler = defineHandler(endless, import.meta.url, () => {
    console.log('the task has started')
    return new Promise(() => {})
  })
  process.exit(
    await runUntilSignalled(() =>
      createWorker({
        catalogue: defineCatalogue(endless),
        handlers: { 'lost.any': handler },
        config: workerConfig(),
      }),
    ),
  )
}
