// npm run dev: runs the platform, and restarts the API or the workers when their files are saved.

import { startDevLoop } from './platform/dev-loop.mjs'
import { root } from './platform/platform.mjs'
import { runInTerminal } from './platform/run-in-terminal.mjs'
import { readOptions } from './system/options.mjs'

const { values } = readOptions(
  `npm run dev -- [--fresh] [--install-redis]

Starts the platform as 'npm start' does, shows what handlers log, and restarts the API or the workers, one after the
other, when their files are saved.

  --fresh          delete all stored tasks first
  --install-redis  install Redis with the system's package manager if this machine has none`,
  {
    options: {
      fresh: { type: 'boolean', default: false },
      'install-redis': { type: 'boolean', default: false },
    },
  },
)

await runInTerminal({
  fresh: values.fresh,
  installRedis: values['install-redis'],
  handlerLogs: true,
  onUp(platform, say) {
    const processes = [...platform.children.keys()]
    const loop = startDevLoop({
      root,
      programs: [
        { main: 'apps/api/src/main.ts', folders: ['apps/api', 'packages'], processes: ['api'] },
        {
          main: 'apps/worker/src/main.ts',
          folders: ['apps/worker', 'packages'],
          processes: processes.filter((name) => name !== 'api'),
        },
      ],
      restart: platform.restart,
      say,
    })
    platform.beforeDown(loop.close)
    say('Watching apps/api, apps/worker and packages.')
  },
})
