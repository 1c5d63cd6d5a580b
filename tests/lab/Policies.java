// Authorizers of somebody else's: a class that works in both modes, one that needs ZooKeeper, and its successor.
package example;

import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.CompletionStage;
import org.apache.kafka.common.Endpoint;
import org.apache.kafka.common.acl.AclBinding;
import org.apache.kafka.common.acl.AclBindingFilter;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.server.authorizer.AclCreateResult;
import org.apache.kafka.server.authorizer.AclDeleteResult;
import org.apache.kafka.server.authorizer.Action;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.server.authorizer.AuthorizationResult;
import org.apache.kafka.server.authorizer.Authorizer;
import org.apache.kafka.server.authorizer.AuthorizerServerInfo;

/** Whom its own key lists may do everything, nobody else anything; super.users mean nothing to it. */
public class Policies implements Authorizer {
    private final Set<String> admitted = new HashSet<>();

    protected String key() {
        return "policies.admitted";
    }

    @Override
    public void configure(Map<String, ?> configs) {
        Object names = configs.get(key());
        if (names == null) throw new ConfigException(key(), null, "missing");
        Collections.addAll(admitted, names.toString().split(";"));
    }

    /** Policies come late: only the listeners that open early are ready at once. */
    @Override
    public Map<Endpoint, ? extends CompletionStage<Void>> start(AuthorizerServerInfo info) {
        Map<Endpoint, CompletableFuture<Void>> ready = new HashMap<>();
        for (Endpoint endpoint : info.endpoints()) {
            CompletableFuture<Void> one = new CompletableFuture<>();
            ready.put(endpoint, one);
            if (info.earlyStartListeners().contains(endpoint.listenerName().orElse(""))) {
                one.complete(null);
            } else {
                CompletableFuture.delayedExecutor(2, java.util.concurrent.TimeUnit.SECONDS)
                    .execute(() -> one.complete(null));
            }
        }
        return ready;
    }

    @Override
    public List<AuthorizationResult> authorize(AuthorizableRequestContext context, List<Action> actions) {
        boolean in = admitted.contains(context.principal().toString());
        return new ArrayList<>(
            Collections.nCopies(actions.size(), in ? AuthorizationResult.ALLOWED : AuthorizationResult.DENIED));
    }

    @Override
    public List<? extends CompletionStage<AclCreateResult>> createAcls(
        AuthorizableRequestContext context, List<AclBinding> bindings) {
        throw new UnsupportedOperationException("createAcls");
    }

    @Override
    public List<? extends CompletionStage<AclDeleteResult>> deleteAcls(
        AuthorizableRequestContext context, List<AclBindingFilter> filters) {
        throw new UnsupportedOperationException("deleteAcls");
    }

    @Override
    public Iterable<AclBinding> acls(AclBindingFilter filter) {
        return Collections.emptyList();
    }

    @Override
    public void close() {}

    /** It needs ZooKeeper: without it the node ends. */
    public static class OfZookeeper extends Policies {
        @Override
        public void configure(Map<String, ?> configs) {
            if (configs.get("zookeeper.connect") == null) throw new ConfigException("zookeeper.connect is missing");
            super.configure(configs);
        }
    }

    /** Its successor, with a key of its own. */
    public static class OfKraft extends Policies {
        @Override
        protected String key() {
            return "policies.of.kraft";
        }
    }
}
