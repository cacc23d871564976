// Builds the reference pages from the tables in the code. `npm run docs` writes them, and a test fails if one is stale.

import { cliPage } from './cli-page.ts'
import { diagnosisPage } from './diagnosis-page.ts'
import { errorsPage } from './errors-page.ts'
import { httpApiPage } from './http-api-page.ts'
import { panelsPage } from './panels-page.ts'
import { redisKeysPage } from './redis-keys-page.ts'
import { settingsPage } from './settings-page.ts'
import { statesPage } from './states-page.ts'
import { alertsPage, logFieldsPage, metricsPage } from './telemetry-pages.ts'

/** Returns the text of each page in `docs/reference`, by file name. */
export function referencePages(): Readonly<Record<string, string>> {
  return {
    'settings.md': settingsPage(),
    'metrics.md': metricsPage(),
    'alerts.md': alertsPage(),
    'panels.md': panelsPage(),
    'log-fields.md': logFieldsPage(),
    'errors.md': errorsPage(),
    'states.md': statesPage(),
    'cli.md': cliPage(),
    'http-api.md': httpApiPage(),
    'redis-keys.md': redisKeysPage(),
    'diagnosis.md': diagnosisPage(),
  }
}
