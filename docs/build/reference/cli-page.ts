// Builds the reference page of the command line.
import { COMMAND_NAMES } from '../../../packages/cli/src/commands/command-table.ts'
import { EXIT_MEANINGS } from '../../../packages/cli/src/exit-codes.ts'
import { commandHelp, generalHelp } from '../../../packages/cli/src/help.ts'
import { page, table } from './markdown.ts'

export function cliPage(): string {
  return page(
    'Command line',
    `
\`bullpen\` sends requests to the API over HTTP. Only \`doctor --bullmq\` reads Redis directly. \`bullpen\` reads the address from
\`--api\` or \`BULLPEN_API\`, and the API key from \`BULLPEN_KEY\`. If you use \`npm start\` in a clone, the API key is in a file:

\`\`\`sh
export BULLPEN_KEY=$(cat .bullpen/dev-key)
npx --no -- bullpen fleet
\`\`\``,
    fenced(generalHelp()),
    '## Exit codes',
    table(
      ['code', 'meaning'],
      Object.entries(EXIT_MEANINGS).map(([exit, meaning]) => [exit, meaning]),
    ),
    ...COMMAND_NAMES.flatMap((name) => [`## bullpen ${name}`, fenced(commandHelp(name))]),
  )
}

const fenced = (text: string): string => `\`\`\`text\n${text}\`\`\``
