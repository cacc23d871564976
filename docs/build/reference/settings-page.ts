// Builds the reference page of the settings.
import { API_SETTINGS, flagOf, type SettingsTable, WORKER_SETTINGS } from '@bullpen/config'
import { RESOURCE_SETTINGS } from '../../../apps/worker/src/resources/settings.ts'
import { code, page, table } from './markdown.ts'

function defaultOf({ schema }: SettingsTable[string]): string {
  const value: unknown = schema.safeParse(undefined).data
  return value === undefined || (Array.isArray(value) && value.length === 0) ? 'none' : code(String(value))
}

function settingsTable(settings: SettingsTable): string {
  return table(
    ['setting', 'environment variable', 'flag', 'default', 'meaning'],
    Object.entries(settings).map(([name, setting]) => [
      code(name),
      code(setting.env),
      code(flagOf(name)),
      defaultOf(setting),
      setting.help,
    ]),
  )
}

export function settingsPage(): string {
  return page(
    'Settings',
    `
A setting can come from a flag, an environment variable, or the JSON file that \`--config\` or \`BULLPEN_CONFIG\` specifies. Flags take
precedence over environment variables, and environment variables take precedence over the file. If none of them provides a value, the
default applies. An empty environment variable counts as unset. Durations are a number with a unit: \`500ms\`, \`30s\`, \`5m\`, \`2h\`,
\`1d\`.

If a name is unknown, the program does not start, and the message suggests the nearest known name. The program also does not start if
two settings contradict each other.

\`createApi\` and \`createWorker\` accept the same settings in their \`config\` option, under the names in the first column.`,
    '## API',
    settingsTable(API_SETTINGS),
    '## Worker',
    settingsTable(WORKER_SETTINGS),
    `
If several sources set the same value, the first of these applies to a task: the call that enqueues it, its definition, \`poolSettings\` of its
queue, the worker's setting, the default. For the drain of a pool, the order is: the command, \`poolSettings\`, the worker's setting, the
default. For example, with \`BULLPEN_WORKER_POOL_SETTINGS='{"reports":{"taskTimeout":"1h","drainMode":"soft"}}'\`, the long tasks of
\`reports\` have an hour unless their definitions say otherwise, and on SIGTERM, the ones that are running finish.

Some rules involve several settings. They apply to the worker and to each pool:

- \`drainTimeout + grace + 2s\` must not exceed \`terminationGrace\` if the mode is \`soft_timeout\`. With \`hard\`, this applies to \`grace + 2s\`. See [Drain](../explanation/drain.md).
- \`heartbeatTimeout\` must be shorter than \`taskTimeout\`.
- \`taskTimeout\` must not exceed \`totalTimeout\`.
- \`queueTimeout\` must be shorter than \`totalTimeout\`.`,
    '## Resources of the example worker',
    settingsTable(RESOURCE_SETTINGS),
    '## Other environment variables',
    table(
      ['environment variable', 'read by', 'meaning'],
      [
        ['`BULLPEN_API`', 'the CLI', 'The address of the API.'],
        ['`BULLPEN_KEY`', 'the CLI', 'The API key.'],
        ['`BULLPEN_BY`', 'the CLI', 'Your name for the audit log.'],
        [
          '`BULLPEN_CONFIG`',
          'API, worker',
          'A JSON file of settings. Its keys are the names in the first column of the tables above.',
        ],
      ],
    ),
  )
}
