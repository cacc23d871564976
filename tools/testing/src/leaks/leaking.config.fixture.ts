// Runs leaking.fixture.ts as every test file is run.
import { defineConfig } from 'vitest/config'
import repository from '../../../../vitest.config.ts'

export default defineConfig((environment) => {
  const { setupFiles = [] } = repository(environment).test ?? {}
  return {
    root: new URL('../../../../', import.meta.url).pathname,
    test: { setupFiles, include: ['tools/testing/src/leaks/leaking.fixture.ts'] },
  }
})
