// A certified OpenID Connect provider on loopback. It asks for a name and any password, and knows everybody.
// node provider.mjs PORT: prints "ready" when it listens. A new process has new keys.
import { generateKeyPairSync } from "node:crypto";
import Provider from "oidc-provider";

const port = Number(process.argv[2]);
const key = generateKeyPairSync("rsa", { modulusLength: 2048 }).privateKey.export({ format: "jwk" });
const GROUPS = { olga: ["ladder-admins", "staff"], carl: ["casters"], nina: ["staff"] };
const API = "https://ranks.example";

const provider = new Provider(`http://127.0.0.1:${port}`, {
  jwks: { keys: [{ ...key, use: "sig", alg: "RS256", kid: `key-${process.pid}` }] },
  clients: [
    {
      client_id: "ranks",
      client_secret: "a secret of the test",
      redirect_uris: process.argv.slice(3),
      response_types: ["code"],
      grant_types: ["authorization_code"],
    },
  ],
  claims: { openid: ["sub"], profile: ["name", "preferred_username"], groups: ["groups"] },
  pkce: { required: () => true },
  features: {
    devInteractions: { enabled: true },
    resourceIndicators: {
      enabled: true,
      defaultResource: () => undefined,
      getResourceServerInfo: () => ({ scope: "play", audience: API, accessTokenFormat: "jwt" }),
      useGrantedResource: () => true,
    },
  },
  cookies: { keys: ["a secret of the test"] },
  async findAccount(_, id) {
    return {
      accountId: id,
      claims: () => ({ sub: id, name: id, preferred_username: `${id}#1`, groups: GROUPS[id] ?? [] }),
    };
  },
});

provider.listen(port, "127.0.0.1", () => console.log("ready"));
