// npm start: runs Redis, the API and two workers in one terminal until Ctrl-C, and Prometheus if it is asked for.
import { runInTerminal } from './platform/run-in-terminal.mjs'
import { readOptions } from './system/options.mjs'

const { values } = readOptions(
  `npm start -- [--fresh] [--observe] [--install-redis]

Starts Redis, the API and two workers, and prints where they are. Ctrl-C drains the workers and stops everything.

  --fresh          delete all stored tasks and metrics first
  --observe        also start Prometheus, which must be installed, with Bullpen's alerts
  --install-redis  install Redis with the system's package manager if this machine has none`,
  {
    options: {
      fresh: { type: 'boolean', default: false },
      observe: { type: 'boolean', default: false },
      'install-redis': { type: 'boolean', default: false },
    },
  },
)
await runInTerminal({ fresh: values.fresh, observe: values.observe, installRedis: values['install-redis'] })
