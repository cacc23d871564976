// Runs the files that leak as every test file is run, one after the other in one worker.
import { defineConfig } from 'vitest/config'
import repository from '../../../../vitest.config.ts'

export default defineConfig((environment) => {
  const { setupFiles = [], isolate = true } = repository(environment).test ?? {}
  return {
    root: new URL('../../../../', import.meta.url).pathname,
    test: {
      setupFiles,
      isolate,
      maxWorkers: 1,
      provide: { closedWithinMs: 100 },
      include: ['tools/testing/src/leaks/leaking-*.fixture.ts'],
    },
  }
})
